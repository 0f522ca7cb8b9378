"""tkperf estimates the memory for the values of a JSON text before it decodes the text."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable

import msgspec
import pytest

from tkperf.interop import fio_documents
from tkperf.interop.fio_documents import Documents, fits_msgspec, fits_python
from tkperf.interop.imported import Unusable

# This size is enough for thousands of values, so the fixed memory of a decoder does not matter.
SIZE = 120_000


def jobs_of(job: str) -> str:
    return '{"jobs":[' + ",".join([job] * (SIZE // (len(job) + 1))) + "]}"


def object_of(keys: int) -> str:
    return "{" + ",".join(f'"{100 + n}":1' for n in range(keys)) + "}"


SHAPES = {
    "empty objects": jobs_of("{}"),
    "empty arrays": jobs_of("[]"),
    "short arrays": jobs_of("[0,0,0,0,0]"),
    "arrays that have just grown": jobs_of("[" + ",".join("0" * 17) + "]"),
    "nested arrays": jobs_of("[[[[[[[[]]]]]]]]"),
    "objects of one key": jobs_of('{"a":0}'),
    "objects that have just grown": jobs_of(object_of(6)),
    "objects that have grown often": jobs_of(object_of(86)),
    "objects of 16-bit places": jobs_of(object_of(700)),
    "one object": '{"jobs":[],"b":{' + ",".join(f'"{7 * n}":1' for n in range(11_000)) + "}}",
    "one object of objects": "{" + ",".join(f'"{n:015}":{{}}' for n in range(5500)) + "}",
    "numbers": jobs_of("1.5"),
    "negative digits": jobs_of("-9"),
    "short exponents": jobs_of("1e9"),
    "long numbers": jobs_of("1" * 4000),
    "strings": jobs_of('"a"'),
    "strings of 15 letters": jobs_of('"aaaaaaaaaaaaaaa"'),
    "letters of Latin 1": jobs_of('"\u00e9\u00e9"'),
    "wide letters": jobs_of('"\U0001f600"'),
    "escapes": jobs_of(r'"\u0100"'),
    "an escape in each string": jobs_of('"' + "a" * 40 + r'\ud83d\ude00"'),
    "long keys": jobs_of('{"' + "k" * 33 + '":0}'),
    "keys of Latin 1": jobs_of('{"\u00e9\u00e9":0}'),
    "white space": jobs_of("{\t}").replace(",", "\t,\r"),
}


def trace_bytes(decode: Callable[[], object]) -> int:
    """Return the peak memory during decoding, while the decoded values exist."""
    tracemalloc.start()
    try:
        _values = decode()
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak_bytes


@pytest.mark.parametrize("name", SHAPES)
def test_the_count_is_an_upper_bound(name: str) -> None:
    """For any text, the estimate is an upper limit of the memory that each decoder needs."""
    text = SHAPES[name]
    need = fio_documents._find_need(text)
    assert trace_bytes(lambda: msgspec.json.decode(text.encode())) <= (
        need.bytes + need.growing_bytes + len(text.encode())
    )
    need = fio_documents._find_need(text, share_keys=True)
    assert trace_bytes(lambda: json.loads(text)) <= (need.bytes - need.saved_bytes + need.growing_bytes)


@pytest.mark.parametrize("cut", [1000, 4099, 70_001])
def test_the_count_does_not_depend_on_where_a_text_is_divided(monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    """The estimate hardly depends on how the text is divided into pieces. A piece may end inside a string, a number or
    an escape. Each end of a piece changes the estimate by at most one value.
    """
    text = "".join(SHAPES[name] for name in ("one object", "escapes", "strings", "long numbers"))
    text += jobs_of(r'"\\\"{[\\\\"')
    whole = fio_documents._find_need(text)
    monkeypatch.setattr(fio_documents, "_PIECE_CHARACTERS", cut)
    divided = fio_documents._find_need(text)
    pieces = len(text) // cut + 1
    assert abs(divided.bytes - whole.bytes) <= 300 * pieces
    assert abs(divided.growing_bytes - whole.growing_bytes) <= 50 * pieces


def of_fio(bins: int, indent: int | None) -> str:
    """Return 8 MB of fio documents with full histograms."""
    histogram = {str(64 * n + 10_000): 1000 + n for n in range(bins)}
    side = {"total_ios": 1000, "clat_ns": {"min": 10, "max": 90, "mean": 50.5, "bins": histogram}}
    separators = (",", ":") if indent is None else None
    one = json.dumps({"jobname": "j", "read": side}, indent=indent, separators=separators)
    return '{"fio version":"fio-3.33","jobs":[' + ",".join([one] * (8_000_000 // len(one))) + "]}"


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("bins", [700, 1400, 1856])
def test_documents_of_fio_are_decoded(bins: int, indent: int | None) -> None:
    """fio documents with full histograms need less memory than ten times their size, so tkperf decodes them. Documents
    without white space must be decoded with shared keys.
    """
    text = of_fio(bins, indent)
    assert fits_python(text, len(text))
    assert indent is None or fits_msgspec(text, len(text))


def test_without_room_for_msgspec_the_keys_are_shared() -> None:
    """If msgspec would need too much memory, the document is decoded with shared keys. The result is the same."""
    text = of_fio(1400, None)
    assert not fits_msgspec(text, len(text))
    (document,) = Documents(text)
    assert document == json.loads(text)


def test_a_quote_in_other_text_hides_no_values() -> None:
    """A single quote in the text before a document does not exclude the values of the document from the memory
    estimate.
    """
    text = 'fio: "' + '{"jobs":[' + "{}," * 4_000_000 + "{}]}"
    with pytest.raises(Unusable, match="more than 10 times its size"):
        list(Documents(text))
    harmless = 'fio: 5" drive\n' + of_fio(700, 2)
    assert len(list(Documents(harmless))) == 1
