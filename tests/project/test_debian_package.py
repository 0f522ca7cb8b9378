"""Rules for ``make deb``. They concern the version, the copyrights and the files of the Debian package.
scripts/try-deb.sh tests the package itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
from email.parser import HeaderParser
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2]
SCRIPTS = SOURCES / "scripts"
DEBIAN = SOURCES / "packaging/debian"


def call_script(expression: str, *words: str) -> object:
    """Return the value of an expression that uses names of scripts/deb.py and scripts/debian_copyright.py."""
    program = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from email.parser import HeaderParser\n"
        "import deb, debian_copyright\n"
        f"words = sys.argv[2:]; print(json.dumps({expression}))"
    )
    argv = [sys.executable, "-B", "-c", program, str(SCRIPTS), *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("version", "debian"),
    [
        ("3.0.0", "3.0.0-1+deb12"),
        ("3.1.0rc2", "3.1.0~rc2-1+deb12"),
        ("3.0.0.dev2138+gd2f31b1cf", "3.0.0~dev2138+gd2f31b1cf-1+deb12"),
        ("3.0.0.dev7+gabc.d20261130", "3.0.0~dev7+gabc.d20261130-1+deb12"),
    ],
)
def test_a_development_version_is_older_than_its_release(version: str, debian: str) -> None:
    """dpkg sorts the version of a development build before the version of the release. The version of a development
    build contains the unchanged hash of the commit.
    """
    release = '{"ID": "debian", "VERSION_ID": "12"}'
    assert call_script("deb.debian_version(words[0], json.loads(words[1]))", version, release) == debian
    older = subprocess.run(["dpkg", "--compare-versions", debian, "le", "3.1.0-1+deb12"], check=False)
    newer = subprocess.run(["dpkg", "--compare-versions", "3.0.0-1+deb12", "lt", "3.0.0-1+deb13"], check=False)
    assert (older.returncode, newer.returncode) == (0, 0)


def test_the_package_has_no_maintainer_scripts() -> None:
    """When the package is installed, upgraded or removed, no program of the package runs as root."""
    assert {path.name for path in DEBIAN.iterdir()} == {
        "control",
        "docs",
        "examples",
        "install",
        "lintian-overrides",
        "rules",
    }


def test_each_override_has_a_reason() -> None:
    """Each override of a lintian warning has a comment above it."""
    lines = (DEBIAN / "lintian-overrides").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if not line.startswith("#"):
            # Overrides for the same reason are on consecutive lines below one comment.
            above = next(each for each in reversed(lines[:number]) if not each.startswith(line.split()[0]))
            assert above.startswith("# "), line


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ("License-Expression: MIT\nLicense: other\n", "MIT"),
        ("License: PSFL\n", "PSFL"),
        ("Classifier: License :: OSI Approved :: BSD License\n", "BSD"),
        ("Name: x\n", None),
    ],
)
def test_the_license_of_a_bundled_package(metadata: str, found: str | None) -> None:
    """The license of a package is read from the metadata of its wheel. A package without a license causes a build
    error.
    """
    assert HeaderParser().parsestr(metadata)
    expression = "debian_copyright.find_license(HeaderParser().parsestr(words[0]))"
    assert call_script(expression, metadata) == found
