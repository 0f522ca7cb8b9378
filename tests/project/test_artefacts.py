"""``make wheel`` builds the sdist and the wheel. The same commit always leads to identical bytes."""

from __future__ import annotations

import email
import os
import subprocess
import tarfile
import zipfile
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

import pytest

from tkperf.cli.main import COMMANDS
from tkperf.model.choices import built_in_profiles

SOURCES = Path(__file__).parents[2]
BUILT = "tkperf/model/built_version.py"
# The smallest part of the checkout that can be built. A test copies only this part, in order to tag and commit it.
LEAST = (
    ".git_archival.txt",
    ".gitattributes",
    ".gitignore",
    "LICENSE",
    "NOTICE",
    "README.md",
    "pyproject.toml",
    "scripts/hatch_build.py",
    "src/tkperf/__init__.py",
    "src/tkperf/model/version.py",
    "src/tkperf/render/templates/fonts/OFL.txt",
)


@dataclass(frozen=True, kw_only=True)
class Artefacts:
    """The sdist and the wheel, with the environment in which both can be built again."""

    sdist: Path
    wheel: Path
    environment: dict[str, str]

    def members(self) -> set[str]:
        """Return the files in the sdist, without the folder that contains all of them."""
        with tarfile.open(self.sdist) as opened:
            return {name.partition("/")[2] for name in opened.getnames()}

    def metadata(self) -> Message:
        with zipfile.ZipFile(self.wheel) as opened:
            (name,) = [name for name in opened.namelist() if name.endswith(".dist-info/METADATA")]
            return email.message_from_bytes(opened.read(name))


def build(sources: Path, kind: str, folder: Path, **environment: str) -> Path:
    """Build the sdist or the wheel from a folder and return the file."""
    uv = subprocess.check_output(["sh", SOURCES / "scripts/uv.sh", SOURCES / ".tools"], text=True).strip()
    subprocess.run(
        [uv, "build", "--quiet", f"--{kind}", "--out-dir", folder, sources],
        check=True,
        env={"UV_SYSTEM_CERTS": "1", **os.environ, **environment},
    )
    (built,) = [path for path in folder.iterdir() if path.suffix in {".gz", ".whl"}]
    return built


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Artefacts:
    folder = tmp_path_factory.mktemp("make wheel")
    subprocess.run(
        ["sh", "-c", 'umask 077; exec sh "$0" "$1"', SOURCES / "scripts/wheel.sh", folder / "out"],
        check=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    (sdist,), (wheel,) = (folder / "out").glob("*.tar.gz"), (folder / "out").glob("*.whl")
    with tarfile.open(sdist) as opened:
        time_s = int(opened.getmembers()[0].mtime)
    return Artefacts(sdist=sdist, wheel=wheel, environment={"SOURCE_DATE_EPOCH": str(time_s)})


@pytest.fixture(scope="module")
def unpacked(artefacts: Artefacts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(artefacts.sdist) as opened:
        opened.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


def test_the_wheel_contains_all_that_is_needed(artefacts: Artefacts) -> None:
    """The wheel contains the templates, profiles and man pages. The wheel contains no path of the machine on which it
    was built.
    """
    with zipfile.ZipFile(artefacts.wheel) as opened:
        names = set(opened.namelist())
        for name in names:
            assert str(SOURCES).encode() not in opened.read(name), name
            assert opened.getinfo(name).external_attr >> 16 & 0o044 == 0o044, name
    source = {
        f"tkperf/{path.relative_to(SOURCES / 'src/tkperf')}"
        for path in (SOURCES / "src/tkperf").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert source <= names
    assert {f"tkperf/procedures/profiles/{name}.toml" for name in built_in_profiles()} <= names
    pages = {name.rpartition("/")[2] for name in names if "/share/man/man1/" in name}
    assert pages == {"tkperf.1", *(f"tkperf-{name}.1" for name in COMMANDS)}


def test_the_metadata_names_license_and_python(artefacts: Artefacts) -> None:
    """The metadata names the license, the license files, and each version of Python with which the tests ran."""
    metadata = artefacts.metadata()
    assert metadata["License-Expression"] == "Apache-2.0 AND OFL-1.1"
    files = metadata.get_all("License-File") or []
    assert files == ["LICENSE", "NOTICE", "src/tkperf/render/templates/fonts/OFL.txt"]
    with zipfile.ZipFile(artefacts.wheel) as opened:
        names = opened.namelist()
    assert all(any(name.endswith(f".dist-info/licenses/{file}") for name in names) for file in files)
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra") or []) == {"parquet", "report", "serve"}
    assert metadata["Description-Content-Type"] == "text/markdown"


def test_the_same_commit_gives_the_same_bytes(artefacts: Artefacts, tmp_path: Path) -> None:
    """If an sdist is built again from the same commit with another umask, the new sdist has the same bytes."""
    environment = {**artefacts.environment, "TKPERF_MAN_PAGES": str(_man_pages_of(artefacts, tmp_path / "man"))}
    again = build(SOURCES, "sdist", tmp_path / "again", **environment)
    assert (again.name, again.read_bytes()) == (artefacts.sdist.name, artefacts.sdist.read_bytes())


def test_a_wheel_of_the_checkout_is_that_of_the_sdist(artefacts: Artefacts, tmp_path: Path) -> None:
    """A wheel that is built from the checkout has the same bytes as the wheel that ``make wheel`` builds from the
    sdist.
    """
    environment = {**artefacts.environment, "TKPERF_MAN_PAGES": str(_man_pages_of(artefacts, tmp_path / "man"))}
    direct = build(SOURCES, "wheel", tmp_path / "direct", **environment)
    assert (direct.name, direct.read_bytes()) == (artefacts.wheel.name, artefacts.wheel.read_bytes())


def test_an_unpacked_sdist_gives_the_same_wheel(artefacts: Artefacts, unpacked: Path, tmp_path: Path) -> None:
    """Any tool can build the same wheel from an unpacked sdist, without git and without the scripts of tkperf."""
    wheel = build(unpacked, "wheel", tmp_path / "wheel", **artefacts.environment)
    assert (wheel.name, wheel.read_bytes()) == (artefacts.wheel.name, artefacts.wheel.read_bytes())


def _man_pages_of(artefacts: Artefacts, folder: Path) -> Path:
    folder.mkdir()
    with tarfile.open(artefacts.sdist) as opened:
        for member in opened.getmembers():
            if "/man/" in member.name and (content := opened.extractfile(member)):
                (folder / Path(member.name).name).write_bytes(content.read())
    return folder


def test_the_sdist_contains_tests_that_need_nothing_else(artefacts: Artefacts) -> None:
    """The sdist contains the documentation, the scripts and those tests that need no other files. scripts/try-wheel.sh
    runs these tests without network, fio and root.
    """
    members = artefacts.members()
    assert {"README.md", "docs/index.md", "uv.lock", "tests/conftest.py", "man/tkperf.1", f"src/{BUILT}"} <= members
    assert any(name.startswith("tests/analysis/test_") for name in members)
    for folder in ("lab", "cli", "batch", "device", "project"):
        assert not any(name.startswith(f"tests/{folder}/") for name in members), folder
    assert not [name for name in members if name.endswith(".pyc") or ".venv" in name]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository that can be built, with one commit and without a tag."""
    folder = tmp_path / "repository"
    for name in LEAST:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((SOURCES / name).read_bytes())
    git(folder, "init", "--quiet")
    git(folder, "add", "--force", ".")
    git(folder, "commit", "--quiet", "--message", "All")
    return folder


def git(folder: Path, *words: str) -> str:
    person = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")
    return subprocess.check_output(["git", *person, *words], cwd=folder, text=True).strip()


def version_of(sources: Path, folder: Path) -> str:
    """Return the version of a build. Both the file name and the module of the build contain this version."""
    sdist = build(sources, "sdist", folder)
    version = sdist.name.removeprefix("tkperf-").removesuffix(".tar.gz")
    with tarfile.open(sdist) as opened:
        module = opened.extractfile(f"tkperf-{version}/src/{BUILT}")
        assert module is not None
        assert f'__version__ = "{version}"' in module.read().decode()
    return version


def test_the_tag_is_the_version(repository: Path, tmp_path: Path) -> None:
    """A tagged commit has the version of its tag. The next commit has a development version, which names the commit. An
    sdist has the version of the repository from which it was built.
    """
    git(repository, "tag", "v3.2.1")
    assert version_of(repository, tmp_path / "tagged") == "3.2.1"
    (sdist,) = (tmp_path / "tagged").glob("*.tar.gz")
    with tarfile.open(sdist) as opened:
        opened.extractall(tmp_path, filter="data")
    assert version_of(tmp_path / "tkperf-3.2.1", tmp_path / "of the sdist") == "3.2.1"
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "More")
    commit = git(repository, "rev-parse", "--short=7", "HEAD")
    assert version_of(repository, tmp_path / "next").startswith(f"3.2.2.dev1+g{commit}")


def test_an_untagged_commit_is_no_release(repository: Path, tmp_path: Path) -> None:
    """A commit without a tag has a development version, which names the commit. Uncommitted changes add the date to
    this version.
    """
    commit = git(repository, "rev-parse", "--short=7", "HEAD")
    assert version_of(repository, tmp_path / "untagged").startswith(f"3.0.0.dev1+g{commit}")
    (repository / "README.md").write_text("changed\n")
    assert ".d" in version_of(repository, tmp_path / "changed").partition("+g")[2]


def test_sources_without_git_have_the_version_of_their_tag(repository: Path, tmp_path: Path) -> None:
    """An archive that git made from a tag has the version of the tag. Other sources without git do not count as a
    release.
    """
    git(repository, "tag", "v3.2.1")
    git(repository, "archive", "--prefix", "archive/", "--output", str(tmp_path / "archive.tar"), "HEAD")
    with tarfile.open(tmp_path / "archive.tar") as opened:
        opened.extractall(tmp_path, filter="data")
    assert version_of(tmp_path / "archive", tmp_path / "of the archive") == "3.2.1"
    (tmp_path / "archive/.git_archival.txt").unlink()
    assert version_of(tmp_path / "archive", tmp_path / "of the files") == "3.0.0.dev0"
