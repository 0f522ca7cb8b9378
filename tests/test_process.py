"""What tkperf starts: programs and modules of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tkperf.process import start_module


def test_a_module_of_ours_loads_nothing_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may have put a json.py there, and whoever makes a report may be root."""
    (tmp_path / "json.py").write_text("open('strangers file was run', 'w')\n")
    monkeypatch.chdir(tmp_path)
    process = start_module("json.tool")
    process.communicate(b"{}", timeout=60)
    assert process.returncode == 0
    assert not (tmp_path / "strangers file was run").exists()
