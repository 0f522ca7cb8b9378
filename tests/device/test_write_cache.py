"""tkperf sets the write cache of a drive as the profile requires and verifies the setting. tkperf restores the old
setting, no matter how the run ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tkperf.device.identity import read_identity
from tkperf.device.permit import grant_permit, hold_target
from tkperf.device.write_cache import WriteCache, restoring
from tkperf.model.errors import DeviceError, EngineError


@dataclass
class FakeSwitch:
    on: bool | None
    stuck: bool = False
    written: list[bool] = field(default_factory=list)

    def read(self) -> bool | None:
        return self.on

    def write(self, on: bool) -> None:
        self.written.append(on)
        if not self.stuck:
            self.on = on


def a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switch: FakeSwitch | None, wanted: str) -> WriteCache:
    path = tmp_path / "drive"
    path.write_bytes(bytes(4096))
    monkeypatch.setattr("tkperf.device.write_cache.find_switch", lambda _: switch)
    identity = read_identity(path)
    return WriteCache(grant_permit(hold_target(identity), confirmed_id=identity.confirm_id).redeem(), wanted)


@pytest.mark.parametrize(
    ("before", "wanted", "said", "after"),
    [
        (True, "off", "off, set for the run (was on)", False),
        (False, "on", "on, set for the run (was off)", True),
        (False, "off", "off", False),
        (True, "keep", "on, as found", True),
        (None, "off", "none that could be set", None),
    ],
)
def test_set_and_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool | None, wanted: str, said: str, after: bool | None
) -> None:
    """The write cache is set for the run, described in words, and restored afterwards."""
    switch = FakeSwitch(before)
    cache = a_cache(tmp_path, monkeypatch, switch, wanted)
    with restoring(cache):
        assert cache.apply() == said
        assert switch.on is after
        assert cache.apply() == said
    assert switch.on is before


def test_set_again_after_a_purge_that_reset_the_drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a purge switched the write cache on, tkperf switches it off again. At the end of the run, tkperf restores the
    state from before the run.
    """
    switch = FakeSwitch(True)
    cache = a_cache(tmp_path, monkeypatch, switch, "off")
    cache.apply()
    switch.on = True
    assert cache.apply() == "off, set for the run (was on)"
    assert switch.on is False
    cache.restore()
    assert switch.on is True


def test_a_drive_that_does_not_do_as_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a drive accepts the command but keeps the old setting, tkperf reports an error that proposes ``--write-cache
    keep``.
    """
    cache = a_cache(tmp_path, monkeypatch, FakeSwitch(True, stuck=True), "off")
    with pytest.raises(DeviceError, match=r" could not be switched .*--write-cache keep"):
        cache.apply()


def test_a_drive_that_is_gone_does_not_hide_why_the_run_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a drive disappeared, the error still states why the run ended. tkperf adds to this error that the write cache
    could not be restored.
    """
    switch = FakeSwitch(True)
    cache = a_cache(tmp_path, monkeypatch, switch, "off")

    def run_and_fail() -> None:
        with restoring(cache):
            cache.apply()
            switch.stuck = True
            raise EngineError("fio died")

    with pytest.raises(EngineError, match=r"fio died; .* was on before the run") as raised:
        run_and_fail()
    assert raised.value.exit_code == 5


def test_nothing_there_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the write cache of a target cannot be switched, as for a file, tkperf records this and reports no error."""
    assert a_cache(tmp_path, monkeypatch, None, "off").apply() == "none that could be set"
