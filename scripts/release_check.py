"""``make release-check``: run the check list of a release as one command.

Every check runs, even if an earlier check failed. Each check prints one line, and the exit status is 1 if any check
failed. The artefacts are written to dist/release, with SHA256SUMS and the software bills of materials. The output of
each program is written to dist/release-logs.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import uuid
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.parser import HeaderParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

CHECKOUT = Path(__file__).resolve().parents[1]
# Libraries that vl-convert-python embeds in each report with charts. The value is the function that returns the version
# of the library.
LIBRARIES = {
    "Vega": "get_vega_version",
    "Vega-Embed": "get_vega_embed_version",
    "Vega-Themes": "get_vega_themes_version",
}
FONT = {
    "type": "library",
    "bom-ref": "inter",
    "name": "Inter",
    "version": "4.001",
    "licenses": [{"license": {"id": "OFL-1.1"}}],
}


class CheckError(Exception):
    """An error that states which check failed, why it failed, and what the user can do."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """The checkout, and the folders into which the checks write."""

    checkout: Path = CHECKOUT
    artefacts: Path = CHECKOUT / "dist/release"
    logs: Path = CHECKOUT / "dist/release-logs"
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.checkout, capture_output=True, text=True, env=self.environment, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    def version(self) -> str:
        """Return the version that the tag of this commit names.

        Raises:
            CheckError: this commit has no tag.
        """
        tag = self.git("describe", "--exact-match", "--tags", "--match", "v[0-9]*")
        if not tag:
            raise CheckError("this commit has no tag: git tag --annotate vX.Y.Z")
        return tag.removeprefix("v")

    def call(self, name: str, *words: str | Path) -> None:
        """Run one of tkperf's scripts and write its output to a log.

        Raises:
            CheckError: the script failed.
        """
        log = self.logs / f"{name}.txt"
        with log.open("wb") as output:
            status = subprocess.run(
                ["sh", *words],
                cwd=self.checkout,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**self.environment, "SOURCE_DATE_EPOCH": self.git("log", "-1", "--format=%ct")},
                check=False,
            ).returncode
        if status:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
            raise CheckError("\n".join([f"{' '.join(map(str, words))} ended with {status}; see {log}", *lines]))


def check_tree(release: Release) -> None:
    # git prints nothing if it refuses the folder of another user, so an empty status alone proves nothing.
    if not release.git("rev-parse", "HEAD"):
        raise CheckError(f"git cannot read {release.checkout}; git -C {release.checkout} status states the reason")
    if changed := release.git("status", "--porcelain"):
        raise CheckError(f"files are not committed:\n{changed}")


def check_tag(release: Release) -> None:
    version = release.version()
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+)?", version):
        raise CheckError(f"v{version} is no tag of a release: v3.0.0, v3.1.0rc1")


def check_words(release: Release) -> None:
    """Check that the heading of the version in the changelog has a date, and that README does not state that no release
    exists.
    """
    version = release.version()
    changelog = (release.checkout / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        raise CheckError(f"CHANGELOG.md has no section '## {version} (YYYY-MM-DD)'")
    if "not released" in (release.checkout / "README.md").read_text(encoding="utf-8"):
        raise CheckError("README.md states that tkperf is not released")


def check_promises(release: Release) -> None:
    """Check that the compatibility promises of each version X.Y.0 are recorded."""
    version = release.version()
    folder = release.checkout / "tests/compatibility" / version
    if version.endswith(".0") and not folder.is_dir():
        raise CheckError(f"{folder} is missing: .venv/bin/python -m tests.compatibility.record {version}")


def check_notice(release: Release) -> None:
    """Check that NOTICE names the font and the libraries in each report with charts, with the locked versions."""
    notice = " ".join((release.checkout / "NOTICE").read_text(encoding="utf-8").split())
    wanted = [f"{name} {version}" for name, version in find_library_versions().items()]
    wanted.append(f"Inter {FONT['version']}")
    if missing := [words for words in wanted if words not in notice]:
        raise CheckError(f"NOTICE does not name {', '.join(missing)}")


def run_script(name: str, *words: str) -> Callable[[Release], None]:
    """Return a check that runs one of tkperf's scripts and fails if the script fails."""

    def check(release: Release) -> None:
        release.call(name, *words)

    return check


def build_twice(name: str) -> Callable[[Release], None]:
    """Return a check that a second call of a script writes identical artefacts."""

    def check(release: Release) -> None:
        again = release.logs / f"{name} again"
        shutil.rmtree(again, ignore_errors=True)
        before = {path.name for path in release.artefacts.iterdir()}
        release.call(name, f"scripts/{name}.sh", release.artefacts)
        release.call(f"{name}-again", f"scripts/{name}.sh", again)
        made = {path.name for path in release.artefacts.iterdir()} - before
        if not made or made != {path.name for path in again.iterdir()}:
            raise CheckError(f"scripts/{name}.sh wrote {sorted(made)}, and then other files into {again}")
        for file in sorted(made):
            if _sha256(release.artefacts / file) != _sha256(again / file):
                raise CheckError(f"{file} differs from {again / file}: compare both with diffoscope")
        shutil.rmtree(again)

    return check


def check_versions(release: Release) -> None:
    """Check that the name of each artefact contains the version of the tag, and that the wheel and the sdist state this
    version.
    """
    version = release.version()
    names = sorted(path.name for path in release.artefacts.iterdir())
    if wrong := [name for name in names if version not in name.replace("~", "") and name != "SHA256SUMS"]:
        raise CheckError(f"{', '.join(wrong)}: not of version {version}")
    with zipfile.ZipFile(release.artefacts / f"tkperf-{version}-py3-none-any.whl") as wheel:
        metadata = wheel.read(f"tkperf-{version}.dist-info/METADATA").decode()
    with tarfile.open(release.artefacts / f"tkperf-{version}.tar.gz") as sdist:
        info = sdist.extractfile(f"tkperf-{version}/PKG-INFO")
        assert info is not None
        if metadata != info.read().decode() or f"\nVersion: {version}\n" not in metadata:
            raise CheckError(f"the metadata of the wheel or of the sdist is not of version {version}")


def write_bills(release: Release) -> None:
    """Write a software bill of materials for the wheel and for the Debian package.

    The bill of the wheel lists tkperf and what pip installs with it: the locked packages of all extras. The bill of the
    Debian package lists the packages that this file contains.
    """
    export = '"$(sh scripts/uv.sh .tools)" export --quiet --frozen --no-dev --all-extras --format cyclonedx1.5'
    release.call("bill", "-c", f"{export} --output-file '{release.logs}/bill.json'")
    locked = (release.logs / "bill.json").read_text(encoding="utf-8")
    (wheel,) = release.artefacts.glob("tkperf-*.whl")
    version = wheel.name.split("-")[1]
    _write_bill(release, json.loads(locked), wheel, f"pkg:pypi/tkperf@{version}", f"tkperf-{version}.cdx.json")
    for package in release.artefacts.glob("tkperf_*.deb"):
        _, debian, architecture = package.stem.split("_")
        bill = _keep_contained(json.loads(locked), read_bundled(package), package.name)
        address = f"pkg:deb/debian/tkperf@{quote(debian)}?arch={architecture}"
        _write_bill(release, bill, package, address, f"{package.name}.cdx.json")


def read_bundled(package: Path) -> dict[str, str]:
    """Return the Python packages that a Debian package contains, as a mapping from package names to versions. The
    mapping does not contain tkperf itself.
    """
    files = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True).stdout
    found = {}
    with tarfile.open(fileobj=io.BytesIO(files)) as tree:
        for member in tree:
            if re.search(r"/site-packages/[^/]+\.dist-info/METADATA$", member.name):
                file = tree.extractfile(member)
                assert file is not None
                metadata = HeaderParser().parsestr(file.read().decode())
                found[_normalized(metadata["Name"])] = metadata["Version"]
    del found["tkperf"]
    return found


def _keep_contained(bill: dict[str, Any], bundled: Mapping[str, str], artefact: str) -> dict[str, Any]:
    """Remove from a bill every package that the artefact does not contain.

    Raises:
        CheckError: the artefact contains a package that is not locked in this version.
    """
    kept = [each for each in bill["components"] if bundled.get(_normalized(each["name"])) == each["version"]]
    listed = {_normalized(each["name"]) for each in kept}
    if unknown := sorted(f"{name} {version}" for name, version in bundled.items() if name not in listed):
        raise CheckError(f"{artefact} contains packages that uv.lock does not name: {', '.join(unknown)}")
    references = {each["bom-ref"] for each in kept} | {bill["metadata"]["component"]["bom-ref"]}
    bill["components"] = kept
    bill["dependencies"] = [
        each | {"dependsOn": [reference for reference in each.get("dependsOn", ()) if reference in references]}
        for each in bill["dependencies"]
        if each["ref"] in references
    ]
    return bill


def _write_bill(release: Release, bill: dict[str, Any], artefact: Path, address: str, name: str) -> None:
    """Write the software bill of materials (SBOM) of an artefact. The SBOM also lists the font and the libraries that
    reports contain.

    uv writes the SBOM in CycloneDX format. The random number and the time in the SBOM are replaced, so that the same
    commit leads to the same file.
    """
    digest = _sha256(artefact)
    bill["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, digest).urn
    epoch = int(release.git("log", "-1", "--format=%ct"))
    bill["metadata"]["timestamp"] = datetime.fromtimestamp(epoch, UTC).isoformat()
    bill["metadata"]["component"] |= {
        "type": "application",
        "version": address.partition("@")[2].partition("?")[0],
        "hashes": [{"alg": "SHA-256", "content": digest}],
        "licenses": [{"expression": "Apache-2.0 AND OFL-1.1"}],
        "purl": address,
    }
    bill["components"] += [FONT, *list_libraries()]
    (release.artefacts / name).write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")


def list_libraries() -> list[dict[str, Any]]:
    """Return the components that vl-convert-python embeds in each report with charts."""
    return [
        {
            "type": "library",
            "bom-ref": name.lower(),
            "name": name.lower(),
            "version": version,
            "licenses": [{"license": {"id": "BSD-3-Clause"}}],
            "purl": f"pkg:npm/{name.lower()}@{version}",
        }
        for name, version in find_library_versions().items()
    ]


def find_library_versions() -> dict[str, str]:
    import vl_convert  # noqa: PLC0415 # it loads V8

    versions = {name: getattr(vl_convert, function)() for name, function in LIBRARIES.items()}
    return versions | {"Vega-Lite": vl_convert.get_vegalite_versions()[-1]}


def _normalized(name: str) -> str:
    """Return a package name in the form in which Python compares names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def write_sums(release: Release) -> None:
    """Write SHA256SUMS for all artefacts, as input for sha256sum --check."""
    artefacts = sorted(path for path in release.artefacts.iterdir() if path.name != "SHA256SUMS")
    if not artefacts:
        raise CheckError("no artefact was built")
    sums = "".join(f"{_sha256(path)}  {path.name}\n" for path in artefacts)
    (release.artefacts / "SHA256SUMS").write_text(sums, encoding="utf-8")
    release.call("sums", "-c", f"cd '{release.artefacts}' && sha256sum --check SHA256SUMS")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# The order of the checks is the order of the steps of a release. No check can be omitted.
CHECKS: tuple[tuple[str, Callable[[Release], None]], ...] = (
    ("all files are committed", check_tree),
    ("the commit has the tag of a release", check_tag),
    ("CHANGELOG.md and README.md name the release", check_words),
    ("the promises of the release are recorded", check_promises),
    ("NOTICE names the font and the libraries of reports", check_notice),
    ("wheels for arm64 of all dependencies", run_script("arm64", "scripts/arm64-wheels.sh")),
    ("lint, tests, core cases of the lab (make test)", run_script("test", "scripts/test.sh")),
    ("tests on each Python (make test-pythons)", run_script("pythons", "scripts/test-pythons.sh")),
    (
        "more damaged input files than in make test",
        run_script("fuzz", "-c", ".venv/bin/python -m tests.fuzz.run --mutations 5000 --seed 7"),
    ),
    ("all cases of the lab (make lab-full)", run_script("lab", "scripts/lab.sh", "full")),
    ("the documentation as a site (make docs)", run_script("docs", "scripts/docs.sh")),
    ("wheel and sdist, twice with the same bytes (make wheel)", build_twice("wheel")),
    ("archive, twice with the same bytes (make archive)", build_twice("archive")),
    ("Debian package, twice with the same bytes (make deb)", build_twice("deb")),
    ("all artefacts have the version of the tag", check_versions),
    ("uv tool and pipx, the tests of the sdist", run_script("try-wheel", "scripts/try-wheel.sh", "dist/release")),
    ("software bills of materials of the wheel and the Debian package", write_bills),
    ("SHA256SUMS", write_sums),
)


def run_checks(release: Release, checks: tuple[tuple[str, Callable[[Release], None]], ...]) -> int:
    """Run all checks and print a line for each check. Return the number of failed checks."""
    for folder in (release.artefacts, release.logs):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    failed = 0
    for title, check in checks:
        print(f"{title} ...", end=" ", flush=True)
        begun_s = time.monotonic()
        try:
            check(release)
        except (CheckError, OSError, ValueError) as error:
            failed += 1
            print("FAILED")
            print("    " + str(error).replace("\n", "\n    "), flush=True)
        else:
            print(f"ok ({time.monotonic() - begun_s:.0f} s)", flush=True)
    return failed


def main() -> int:
    failed = run_checks(Release(), CHECKS)
    print(f"{len(CHECKS) - failed} of {len(CHECKS)} checks ok" + (f", {failed} FAILED" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
