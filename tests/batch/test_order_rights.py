"""A user who may run 'tkperf on-host' through sudo can neither read nor write other files of root, and cannot run
another program as root.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tkperf.batch.hosts.messages import Begin, Follow, Lines, Options, PlanBatch, ToHost
from tkperf.batch.hosts.order_rights import (
    BEGUN_BY,
    claim_folder,
    drop_caller_environment,
    find_caller_uid,
    name_input,
    require_own_batch,
    require_sent_inputs,
)
from tkperf.batch.request import BatchDrive, BatchRequest
from tkperf.cli import remote_orders
from tkperf.model.errors import RefusedError, RunFileError
from tkperf.pipeline.run_request import RunRequest

SECRET = "secret_of_root = 1\n"
USER_UID = 4711
QUICK = Path(remote_orders.__file__).parents[1] / "procedures/profiles/quick.toml"
WORKLOAD = """\
title = "random reads"
[[phase]]
kind = "round"
"""


def request_of(**run: Any) -> BatchRequest:
    given = RunRequest(suite="ssd", device="sim:sata-ssd", **run)
    drive = BatchDrive(name="d1", request=given, given="sim:sata-ssd")
    return BatchRequest(name="rights", drives=(drive,))


def call(order: PlanBatch | Begin, folder: Path, **variables: str) -> tuple[int, list[dict[str, Any]]]:
    """Run ``tkperf on-host`` as sudo would run it for an ordinary user. Return its exit code and its messages."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tkperf", "on-host"],
        input=msgspec.json.encode(order) + b"\n",
        capture_output=True,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "SUDO_UID": str(USER_UID), **variables},
        timeout=120,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def plan_of(request: BatchRequest, files: dict[str, str] | None = None) -> PlanBatch:
    return PlanBatch(request=request, files=files or {}, options=Options(), no_probe=True, as_json=False)


def test_a_profile_by_its_path_on_the_host_is_refused_and_not_read(tmp_path: Path) -> None:
    """An order that names a profile by a path on the host is refused, and the file is not read. An error about the
    content would reveal a line of a file that only root can read.
    """
    (tmp_path / "secret.toml").write_text(SECRET)
    code, messages = call(plan_of(request_of(profile=str(tmp_path / "secret.toml"))), tmp_path)
    assert (code, messages[-1]["type"]) == (3, "Refused")
    assert "Store the file on the machine" in messages[-1]["text"]
    assert "secret_of_root" not in json.dumps(messages)


@pytest.mark.parametrize(
    "named",
    [
        {"profile": "/etc/shadow"},
        {"profile": "../../../etc/shadow"},
        {"profile": "secret.toml"},
        {"profile": "/proc/self/fd/0"},
        {"profile": name_input("not sent")},
        {"tests": ("/root/own.toml",)},
        {"tests": ("iops", "./own.toml")},
        {"tests": ("own.toml",)},
    ],
)
def test_no_path_of_the_host_names_an_input(named: dict[str, Any]) -> None:
    """An order must not name an input file by a path on the host. This rule covers absolute and relative paths, paths
    through a link, and the names of files from earlier orders.
    """
    with pytest.raises(RefusedError, match="is a path on the host"):
        require_sent_inputs(request_of(**named), {})


@pytest.mark.parametrize("name", ["../x.toml", "input-0123456789abcdef.toml", "profile.toml", "begun-by-uid", ""])
def test_an_input_file_has_the_name_that_its_content_gives(name: str) -> None:
    """The name of an input file must be derived from its content. If the name could be chosen freely, the file could
    replace a file of a running batch.
    """
    with pytest.raises(RefusedError, match="the name of such a file must be computed from its content"):
        require_sent_inputs(request_of(), {name: "title = 1"})


def test_what_is_sent_or_shipped_is_accepted(tmp_path: Path) -> None:
    """An order may contain the content of a profile, the name of a shipped profile, or no profile. It may also contain
    the content of a workload file.
    """
    text = QUICK.read_text()
    name = name_input(text)
    workload = name_input(WORKLOAD)
    require_sent_inputs(request_of(profile=name, tests=("iops", workload)), {name: text, workload: WORKLOAD})
    require_sent_inputs(request_of(profile="quick", tests=("iops",)), {})
    require_sent_inputs(request_of(), {})
    code, messages = call(plan_of(request_of(profile=name, tests=("lat",)), {name: text}), tmp_path)
    assert (code, messages[-1]["type"]) == (0, "BatchEnded"), messages[-1]


def test_the_environment_of_the_caller_has_no_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the caller has no effect. tkperf drops variables that name programs, folders or modules, and
    leaves the current folder.
    """
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    for name in ("TKPERF_FIO", "TKPERF_SMTP_USER", "TMPDIR", "PYTHONPATH", "XDG_CACHE_HOME", "LD_PRELOAD", "FIO"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("SUDO_UID", str(USER_UID))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin")
    monkeypatch.setenv("LANG", "C.UTF-8")
    try:
        assert drop_caller_environment() == USER_UID
        assert not [name for name, text in os.environ.items() if str(tmp_path) in text]
        assert os.environ["LANG"] == "C.UTF-8"
        assert Path.cwd() == Path("/")
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_a_program_of_the_caller_is_not_run_as_root(tmp_path: Path) -> None:
    """A program of the caller is never run as root. tkperf uses the fio of the host, even if PATH and TKPERF_FIO name
    another program.
    """
    trap, touched = tmp_path / "fio", tmp_path / "touched"
    trap.write_text(f"#!/bin/sh\ntouch {touched}\necho fio-3.99\n")
    trap.chmod(0o755)
    _, messages = call(
        plan_of(request_of(profile="quick")), tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}", TKPERF_FIO=str(trap)
    )
    assert messages[0]["type"] == "Hello"
    assert messages[0]["fio_version"] != "fio-3.99"
    assert not touched.exists()


@pytest.mark.parametrize(
    ("variables", "uid"),
    [
        ({}, os.geteuid()),
        ({"SUDO_UID": "0"}, 0),
        ({"SUDO_UID": "4711"}, 4711),
        ({"PKEXEC_UID": "4711"}, 4711),
        ({"DOAS_USER": "daemon"}, 1),
        ({"DOAS_USER": "daemon", "SUDO_UID": "0"}, 1),
        ({"SUDO_UID": "4711", "DOAS_USER": "root"}, 4711),
        ({"DOAS_USER": "no such user"}, -1),
        ({"SUDO_UID": ""}, -1),
    ],
)
def test_the_user_behind_root_is_found(variables: dict[str, str], uid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SUDO_UID", "PKEXEC_UID", "DOAS_USER"):
        monkeypatch.delenv(name, raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    assert find_caller_uid() == uid


def follow(name: str, caller_uid: int) -> None:
    with open(os.devnull, "rb") as nothing:
        lines: Lines[ToHost] = Lines(os.dup(nothing.fileno()), ToHost)
        remote_orders._follow(Follow(name=name), lines, caller_uid)


def begin(name: str, caller_uid: int) -> None:
    order = Begin(request=msgspec.structs.replace(request_of(), name=name), files={}, options=Options())
    with open(os.devnull, "rb") as nothing:
        remote_orders._begin(order, Lines(os.dup(nothing.fileno()), ToHost), caller_uid)


@pytest.mark.parametrize("use", [follow, begin])
@pytest.mark.parametrize("owner", ["0\n", "1234\n", "", None])
def test_a_batch_of_another_user_is_neither_followed_nor_resumed(
    use: Callable[[str, int], None], owner: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of another user is neither followed nor resumed, because its results, runs and input files belong to root
    or to the user who started it.
    """
    monkeypatch.setattr(remote_orders, "HOSTS_FOLDER", tmp_path)
    # Otherwise all later tests in this process would run with the lowest priority.
    monkeypatch.setattr(os, "nice", lambda _: 19)
    folder = tmp_path / "nightly"
    folder.mkdir()
    (folder / "nightly.batch").touch()
    if owner is not None:
        (folder / BEGUN_BY).write_text(owner)
    with pytest.raises(RefusedError, match="you did not begin the batch"):
        use("nightly", USER_UID)


def test_a_batch_is_for_root_and_the_user_who_began_it(tmp_path: Path) -> None:
    folder = tmp_path / "host" / "mine"
    claim_folder(folder, USER_UID)
    claim_folder(folder, USER_UID)
    require_own_batch(folder, USER_UID)
    require_own_batch(folder, 0)
    with pytest.raises(RefusedError):
        claim_folder(folder, USER_UID + 1)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_marked_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a new folder for a batch cannot be marked with its user, the folder is removed. Otherwise the user could not
    use the name again, for example after the disk was full for a moment.
    """

    def fail(self: Path, *_: object, **__: object) -> int:
        raise OSError(28, "No space left on device", str(self))

    with monkeypatch.context() as full:
        full.setattr(Path, "write_text", fail)
        with pytest.raises(RunFileError, match="No space left"):
            claim_folder(tmp_path / "mine", USER_UID)
    claim_folder(tmp_path / "mine", USER_UID)
