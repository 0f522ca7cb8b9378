"""Vega's expressions, as far as charts use them: arithmetic, comparisons, ``datum`` and some functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tkperf.render.svg.boxes import round_half_up
from tkperf.render.svg.formats import format_number, format_utc, number_text
from tkperf.render.svg.known import NotDrawnError

Value = Any
Expression = Callable[[Mapping[str, Any]], Value]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?)|(?P<text>'[^'\\]*'|\"[^\"\\]*\")"
    r"|(?P<pattern>(?:(?<=,)|(?<=, ))/[^/\\]+/g)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>===|!==|<=|>=|&&|\|\||[-+*/%<>?:()\[\],.]))"
)
_BINARY = (
    ("||",),
    ("&&",),
    ("===", "!=="),
    ("<", ">", "<=", ">="),
    ("+", "-"),
    ("*", "/", "%"),
)


@cache
def compile_expression(text: str) -> Expression:
    """What tells the expression's value for a ``datum``.

    Raises:
        NotDrawnError: it has more than is known here.
    """
    parser = _Parser(text)
    found = parser.choice()
    if parser.kind:
        raise NotDrawnError(f"expression {text!r}")
    return found


def is_true(value: Value) -> bool:
    """As JavaScript has it."""
    return bool(value) and value == value


class _Parser:
    """Descends from the operators that bind least."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self.kind, self.token = "", ""
        self._next()

    def _next(self) -> str:
        before = self.token
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            if self._text[self._at :].strip():
                raise NotDrawnError(f"expression {self._text!r}")
            self.kind = self.token = ""
            return before
        self._at = found.end()
        self.kind = found.lastgroup or ""
        self.token = found[self.kind].strip()
        return before

    def _take(self, sign: str) -> bool:
        if self.kind != "sign" or self.token != sign:
            return False
        self._next()
        return True

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise NotDrawnError(f"expression {self._text!r}")

    def choice(self) -> Expression:
        test = self._binary(0)
        if not self._take("?"):
            return test
        one = self.choice()
        self._need(":")
        other = self.choice()
        return lambda datum: one(datum) if is_true(test(datum)) else other(datum)

    def _binary(self, level: int) -> Expression:
        if level == len(_BINARY):
            return self._unary()
        left = self._binary(level + 1)
        while self.kind == "sign" and self.token in _BINARY[level]:
            left = _join(self._next(), left, self._binary(level + 1))
        return left

    def _unary(self) -> Expression:
        if self._take("-"):
            inner = self._unary()
            return lambda datum: -_number(inner(datum))
        return self._primary()

    def _primary(self) -> Expression:
        kind, token = self.kind, self.token
        if self._take("("):
            inner = self.choice()
            self._need(")")
            return inner
        if self._take("["):
            parts = self._list("]")
            return lambda datum: [part(datum) for part in parts]
        self._next()
        if kind == "number":
            return _constant(float(token))
        if kind == "text":
            return _constant(token[1:-1])
        if kind == "pattern":
            return _constant(re.compile(re.escape(token[1:-2])))
        if kind == "name":
            return self._name(token)
        raise NotDrawnError(f"expression {self._text!r}")

    def _list(self, end: str) -> list[Expression]:
        parts: list[Expression] = []
        while not self._take(end):
            parts.append(self.choice())
            if not self._take(","):
                self._need(end)
                break
        return parts

    def _name(self, name: str) -> Expression:
        if name == "datum":
            self._need(".")
            field = self._next()
            return lambda datum: datum.get(field)
        if name == "LN10":
            return _constant(math.log(10))
        if name not in _FUNCTIONS:
            raise NotDrawnError(f"{name} in an expression")
        self._need("(")
        function, parts = _FUNCTIONS[name], self._list(")")
        return lambda datum: function(*(part(datum) for part in parts))


def _constant(value: Value) -> Expression:
    return lambda _: value


def _number(value: Value) -> float:
    """What JavaScript would make a number of is refused."""
    if isinstance(value, bool) or not isinstance(value, float | int):
        raise NotDrawnError(f"{value!r:.60} as a number")
    return float(value)


def _text(value: Value) -> str:
    return value if isinstance(value, str) else number_text(_number(value))


def _add(one: Value, other: Value) -> Value:
    if isinstance(one, str) or isinstance(other, str):
        return _text(one) + _text(other)
    return _number(one) + _number(other)


def _divide(one: Value, other: Value) -> float:
    upper, lower = _number(one), _number(other)
    if lower:
        return upper / lower
    return math.copysign(math.inf, upper) if upper else math.nan


def _remainder(one: Value, other: Value) -> float:
    upper, lower = _number(one), _number(other)
    return math.fmod(upper, lower) if lower and math.isfinite(upper) else math.nan


def _equals(one: Value, other: Value) -> bool:
    return isinstance(one, str) == isinstance(other, str) and bool(one == other)


_OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "+": _add,
    "-": lambda one, other: _number(one) - _number(other),
    "*": lambda one, other: _number(one) * _number(other),
    "/": _divide,
    "%": _remainder,
    "<": lambda one, other: _number(one) < _number(other),
    ">": lambda one, other: _number(one) > _number(other),
    "<=": lambda one, other: _number(one) <= _number(other),
    ">=": lambda one, other: _number(one) >= _number(other),
    "===": _equals,
    "!==": lambda one, other: not _equals(one, other),
}


def _join(sign: str, left: Expression, right: Expression) -> Expression:
    if sign == "||":
        return lambda datum: one if is_true(one := left(datum)) else right(datum)
    if sign == "&&":
        return lambda datum: right(datum) if is_true(one := left(datum)) else one
    operate = _OPERATORS[sign]
    return lambda datum: operate(left(datum), right(datum))


def _log(value: Value) -> float:
    number = _number(value)
    if number > 0:
        return math.log(number)
    return -math.inf if number == 0 else math.nan


def _is_valid(value: Value) -> bool:
    return value is not None and value == value


def _replace(text: Value, pattern: Value, by: Value) -> str:
    if not isinstance(pattern, re.Pattern):
        raise NotDrawnError("replace without a pattern")
    replaced: str = pattern.sub(lambda _: str(by), _text(text))
    return replaced


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "floor": lambda value: float(math.floor(_number(value))),
    "ceil": lambda value: float(math.ceil(_number(value))),
    "round": lambda value: float(round_half_up(_number(value))),
    "log": _log,
    "pow": lambda base, power: _number(base) ** _number(power),
    "min": lambda *values: min(map(_number, values)),
    "max": lambda *values: max(map(_number, values)),
    "sequence": lambda first, end: [float(each) for each in range(int(first), int(end))],
    "isValid": _is_valid,
    "format": lambda value, form: format_number(_number(value), form),
    "utcFormat": lambda value, form: format_utc(_number(value), form),
    "split": lambda text, by: _text(text).split(by),
    "replace": _replace,
}
