"""Decoding with msgspec that is safe when several threads decode at the same moment.

msgspec examines a type when the type is used for the first time, and stores a description of the type in the class
before this description is complete. If two threads use a type for the first time at the same moment, the second thread
reads an incomplete description, and the process ends with a segmentation fault. This crash was seen with msgspec 0.22.0
and Python 3.11 when a batch connected to two hosts at the same time. Therefore only one thread at a time examines
types. All code that decodes data into a type must call the functions of this module.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_EXAMINED = set[Any]()
_EXAMINING = threading.Lock()


def examine(type_: Any) -> None:
    """Make msgspec examine a type and all types in it. If msgspec has already examined the type, the call has no
    effect.
    """
    if type_ not in _EXAMINED:
        with _EXAMINING:
            msgspec.json.Decoder(type_)
            _EXAMINED.add(type_)


def convert(value: object, type_: type[T]) -> T:
    """Return plain data as an object of the type ``type_``.

    Raises:
        msgspec.ValidationError: the data does not fit the type.
    """
    examine(type_)
    return msgspec.convert(value, type_)


def decode_json(document: bytes | str, type_: type[T]) -> T:
    """Return the content of a JSON document as an object of the type ``type_``.

    Raises:
        msgspec.DecodeError: the document is not JSON, or does not fit the type.
    """
    examine(type_)
    return msgspec.json.decode(document, type=type_)


def make_json_decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    """Return a decoder of JSON documents of this type."""
    examine(type_)
    return msgspec.json.Decoder(type_)


def make_msgpack_decoder(type_: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return a decoder of MessagePack documents of this type."""
    examine(type_)
    return msgspec.msgpack.Decoder(type_)
