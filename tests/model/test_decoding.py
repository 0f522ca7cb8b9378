"""Decoding of JSON in several threads at the same time."""

from __future__ import annotations

import subprocess
import sys

FIRST_USES = """
import sys, threading
from types import ModuleType
from tkperf.model.decoding import convert, decode_json, make_json_decoder

sys.setswitchinterval(1e-6)
fields = "".join(f"    f{n}: int = 0\\n" for n in range(8))
source = "from __future__ import annotations\\nimport msgspec\\n" + "".join(
    f"class S{n}(msgspec.Struct):\\n{fields}" + (f"    inner: S{n - 1} | None = None\\n" if n else "")
    for n in range(12)
)
document, ways = b'{"inner": {"inner": {"f1": 1}}}', []


def use_first(way):
    start.wait()
    right.append(way(types[f"S{11 - ways.index(way)}"]).inner.inner.f1 == 1)


ways = [
    lambda type_: decode_json(document, type_),
    lambda type_: convert({"inner": {"inner": {"f1": 1}}}, type_),
    lambda type_: make_json_decoder(type_).decode(document),
]
for n in range(100):
    module = sys.modules[f"m{n}"] = ModuleType(f"m{n}")
    types = module.__dict__
    exec(source, types)
    start, right = threading.Barrier(len(ways)), []
    threads = [threading.Thread(target=use_first, args=(way,)) for way in ways]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * len(ways), right
"""


def test_threads_may_use_a_type_for_the_first_time_at_the_same_moment() -> None:
    """Several threads can use a type for the first time at the same moment. With msgspec alone, the process ends with a
    segmentation fault in this case.
    """
    done = subprocess.run([sys.executable, "-c", FIRST_USES], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
