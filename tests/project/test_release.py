"""``make release-check`` and the workflow files run every check and report every failure."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml

SOURCES = Path(__file__).parents[2]
MAKEFILE = (SOURCES / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = sorted((SOURCES / ".github/workflows").glob("*.yml"))


@pytest.fixture
def check() -> Iterator[Any]:
    """Yield the module scripts/release_check.py."""
    spec = spec_from_file_location("release_check", SOURCES / "scripts/release_check.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["release_check"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["release_check"]


def git(folder: Path, *words: str) -> None:
    person = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *person, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def release(check: Any, tmp_path: Path) -> Any:
    """Return a release from a repository. The repository contains the texts of version 3.0.0 but not its tag."""
    checkout = tmp_path / "checkout"
    (checkout / "scripts").mkdir(parents=True)
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## 3.0.0 (2027-01-01)\n")
    (checkout / "README.md").write_text("# tkperf\n")
    git(checkout, "init", "--quiet")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--message", "All")
    release = check.Release(checkout=checkout, artefacts=tmp_path / "artefacts", logs=tmp_path / "logs")
    release.artefacts.mkdir()
    release.logs.mkdir()
    return release


def test_the_tree_must_be_clean(check: Any, release: Any) -> None:
    """A release requires a clean work tree, because a release contains only committed files."""
    check.check_tree(release)
    (release.checkout / "forgotten.py").touch()
    with pytest.raises(check.CheckError, match=r"forgotten\.py"):
        check.check_tree(release)


def test_a_tree_that_git_refuses_is_not_clean(check: Any, release: Any) -> None:
    """If git cannot read the checkout, for example because it belongs to another user, the check of the tree fails."""
    (release.checkout / ".git/HEAD").unlink()
    with pytest.raises(check.CheckError, match="git cannot read"):
        check.check_tree(release)


def test_the_commit_must_have_a_tag(check: Any, release: Any) -> None:
    """Only a commit with the tag of a release counts as this release. The following commit does not."""
    with pytest.raises(check.CheckError, match="no tag"):
        check.check_tag(release)
    git(release.checkout, "tag", "v3.0.0")
    check.check_tag(release)
    git(release.checkout, "commit", "--quiet", "--allow-empty", "--message", "More")
    with pytest.raises(check.CheckError, match="no tag"):
        check.check_tag(release)
    git(release.checkout, "tag", "v3.1")
    with pytest.raises(check.CheckError, match="no tag of a release"):
        check.check_tag(release)


def test_words_and_promises_must_name_the_release(check: Any, release: Any) -> None:
    """The changelog must contain the version with its date, README must not contradict the changelog, and the promises
    of each version X.Y.0 must be recorded.
    """
    git(release.checkout, "tag", "v3.0.0")
    check.check_words(release)
    with pytest.raises(check.CheckError, match=r"tests\.compatibility\.record 3\.0\.0"):
        check.check_promises(release)
    (release.checkout / "tests/compatibility/3.0.0").mkdir(parents=True)
    check.check_promises(release)
    (release.checkout / "README.md").write_text("Status: not released yet\n")
    with pytest.raises(check.CheckError, match="not released"):
        check.check_words(release)
    for changelog in ("# Changelog\n", "# Changelog\n\n## 3.0.0 (not released yet)\n", "\n## 3.0.0rc1 (2027-01-01)\n"):
        (release.checkout / "CHANGELOG.md").write_text(changelog)
        with pytest.raises(check.CheckError, match=r"'## 3\.0\.0 \(YYYY-MM-DD\)'"):
            check.check_words(release)


def test_notice_names_what_reports_contain(check: Any) -> None:
    """NOTICE names the embedded font and the embedded libraries with the versions that this checkout uses."""
    check.check_notice(check.Release())


def test_artefacts_that_differ_are_found(check: Any, release: Any) -> None:
    """Every build is repeated. If the second build has other bytes or no output, the check fails."""
    script = release.checkout / "scripts/wheel.sh"
    script.write_text('mkdir -p "$1"; echo same >"$1/a"; echo "$SOURCE_DATE_EPOCH" >"$1/b"\n')
    check.build_twice("wheel")(release)
    assert (release.artefacts / "b").read_text().strip().isdigit()
    script.write_text('mkdir -p "$1"; echo "$1" >"$1/c"\n')
    with pytest.raises(check.CheckError, match="c differs"):
        check.build_twice("wheel")(release)
    script.write_text("exit 0\n")
    with pytest.raises(check.CheckError, match="wrote"):
        check.build_twice("wheel")(release)
    script.write_text("echo the reason; exit 3\n")
    with pytest.raises(check.CheckError, match=r"ended with 3(.|\n)*the reason"):
        check.build_twice("wheel")(release)


def test_sums_are_those_of_the_artefacts(check: Any, release: Any) -> None:
    """SHA256SUMS lists every artefact. If no artefact exists, the check fails."""
    with pytest.raises(check.CheckError, match="no artefact"):
        check.write_sums(release)
    (release.artefacts / "a.whl").write_text("content")
    check.write_sums(release)
    check.write_sums(release)
    assert (release.artefacts / "SHA256SUMS").read_text().splitlines()[0].endswith("  a.whl")
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=release.artefacts, check=True)


def test_the_bill_lists_what_the_wheel_needs(check: Any, release: Any) -> None:
    """The software bill of materials lists tkperf, every locked package of its extras, and the font. The same commit
    leads to the same file.
    """
    (release.artefacts / "tkperf-3.0.0-py3-none-any.whl").write_bytes(b"a wheel")
    here = check.Release(artefacts=release.artefacts, logs=release.logs)
    check.write_bills(here)
    path = release.artefacts / "tkperf-3.0.0.cdx.json"
    first = path.read_bytes()
    bill = json.loads(first)
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", "3.0.0")
    names = {component["name"] for component in bill["components"]}
    assert {"Inter", "click", "numpy", "jinja2", "vl-convert-python", "pyarrow", "starlette"} <= names
    assert "pytest" not in names
    check.write_bills(here)
    assert path.read_bytes() == first


def package(file: Path, versions: dict[str, str]) -> None:
    """Write a Debian package that contains the metadata of these Python packages."""
    tree = file.parent / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        "Package: tkperf\nVersion: 3.0.0-1+deb12\nArchitecture: amd64\nMaintainer: A <a@example.org>\nDescription: -\n"
    )
    for name, number in versions.items():
        record = tree / f"usr/lib/tkperf/lib/python3.11/site-packages/{name}-{number}.dist-info"
        record.mkdir(parents=True)
        (record / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {number}\n")
    subprocess.run(["dpkg-deb", "--build", tree, file], check=True, capture_output=True)
    shutil.rmtree(tree)


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
def test_the_bill_of_a_debian_package_lists_what_the_package_contains(check: Any, release: Any) -> None:
    """The bill of a Debian package lists the packages inside this file, the font and the libraries of reports. If a
    bundled package is not locked, the check fails.
    """
    (release.artefacts / "tkperf-3.0.0-py3-none-any.whl").write_bytes(b"a wheel")
    here = check.Release(artefacts=release.artefacts, logs=release.logs)
    deb = release.artefacts / "tkperf_3.0.0-1+deb12_amd64.deb"
    rich, click = version("rich"), version("click")
    package(deb, {"tkperf": "3.0.0", "rich": rich, "Click": click})
    check.write_bills(here)
    bill = json.loads((release.artefacts / f"{deb.name}.cdx.json").read_text())
    contained = {each["name"]: each["version"] for each in bill["components"]}
    assert contained["rich"] == rich
    assert set(contained) == {"rich", "click", "Inter", "vega", "vega-lite", "vega-embed", "vega-themes"}
    root = bill["metadata"]["component"]
    assert root["purl"] == "pkg:deb/debian/tkperf@3.0.0-1%2Bdeb12?arch=amd64"
    assert {each["ref"] for each in bill["dependencies"]} <= {each["bom-ref"] for each in (*bill["components"], root)}
    package(deb, {"tkperf": "3.0.0", "rich": "0.1"})
    with pytest.raises(check.CheckError, match=r"not name: rich 0\.1"):
        check.write_bills(here)


def test_every_check_runs_and_a_failure_counts(check: Any, release: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A failed check does not prevent the following checks. Each check has a line in the output, and the failures are
    counted.
    """

    def fails(_release: object) -> None:
        raise check.CheckError("the reason")

    ran: list[object] = []
    assert check.run_checks(release, (("first", fails), ("second", ran.append))) == 1
    assert ran == [release]
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("first ... FAILED")
    assert "the reason" in said[1]
    assert said[2].startswith("second ... ok")


def test_no_check_can_be_left_out(check: Any) -> None:
    """The list of checks contains the tag, all tests, the lab, each artefact, the bill of materials and the checksums.
    No option can omit a check.
    """
    titles = " ".join(title for title, _ in check.CHECKS)
    for words in (
        "tag",
        "make test)",
        "make lab-full",
        "arm64",
        "make wheel",
        "make archive",
        "make deb",
        "materials",
        "SHA256",
    ):
        assert words in titles
    assert "argv" not in (SOURCES / "scripts/release_check.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_make_alone(path: Path) -> None:
    """A workflow installs make and git, checks out the sources and calls targets of the Makefile. The only other step
    makes git accept the checkout, which belongs to another user.
    """
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    called = [run.split()[1:] for run in runs if run.startswith("make ")]
    assert called
    assert all(len(words) == 1 and words[0] in targets for words in called)
    install, accept = sorted({run for run in runs if not run.startswith("make ")})
    assert install.startswith("apt-get update && apt-get install --yes ca-certificates git make ")
    assert accept == 'git config --system --add safe.directory "$GITHUB_WORKSPACE"'
    for job in workflow["jobs"].values():
        steps = [step.get("run") or step["uses"].split("@")[0] for step in job["steps"]]
        if install in steps:
            assert steps[:3] == [install, "actions/checkout", accept]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_use_fixed_actions_without_rights(path: Path) -> None:
    """A workflow names each action by its commit, because a tag can be moved to other code. The checkout keeps no
    token, and only the job that publishes the site has more than the right to read.
    """
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert "permissions" not in job or name == "publish"
        for step in (step for step in job["steps"] if "uses" in step):
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
            if step["uses"].startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
