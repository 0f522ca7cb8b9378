"""Write debian/copyright for a package that bundles Python packages, from the records of these packages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

from packages import SOURCES, InstallError

FORMAT = "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
# Every Debian system contains the texts of these licenses. Debian's policy asks packages to refer to these texts.
APACHE = "/usr/share/common-licenses/Apache-2.0"
GPL = "/usr/share/common-licenses/GPL-3"
# Patterns that find the texts of these licenses within other texts, from the title to the last words.
_COMMON_TEXTS = {
    APACHE: re.compile(
        r"^[ \t]*Apache License\s+Version 2\.0, January 2004.*?END OF TERMS AND CONDITIONS"
        r"(?:\s+APPENDIX:.*?limitations under the License\.)?",
        re.MULTILINE | re.DOTALL,
    ),
    GPL: re.compile(r"^[ \t]*GNU GENERAL PUBLIC LICENSE\s+Version 3.*?why-not-lgpl\.html>\.", re.MULTILINE | re.DOTALL),
}
_LICENSE_FILES = re.compile(r"^(licen[sc]e|copying|notice|ofl)\b", re.IGNORECASE)
_COPYRIGHT = re.compile(r"^\W*(?:copyright\b|©)[\s:]*(.*)$", re.IGNORECASE)
# The beginning of a text in which a license explains the word "copyright" and does not name an owner.
_NO_OWNER = re.compile(r"^(notice|holder|owner|license|law|and |\[yyyy|statement|disclaimer|interest)", re.IGNORECASE)


def write_copyright(file: Path, build: Path) -> None:
    """Write a record with a paragraph for tkperf and for each bundled package.

    Args:
        build: the folder that contains the files of the package by their paths.

    Raises:
        InstallError: a package does not name its license.
    """
    (site,) = build.glob("usr/lib/tkperf/lib/python3.*/site-packages")
    paragraphs = [f"Format: {FORMAT}\nUpstream-Name: tkperf\nComment:{_indented((SOURCES / 'NOTICE').read_text())}"]
    paragraphs.append(
        "Files: *\nCopyright: the tkperf contributors\nLicense: Apache-2.0\n On Debian systems, the text of this "
        f"license is in {APACHE}."
    )
    fonts = sorted(site.glob("tkperf/render/templates/fonts/*"))
    (font_license,) = [path for path in fonts if path.name.startswith("OFL")]
    text = font_license.read_text(encoding="utf-8")
    paragraphs.append(_paragraph([font_license.parent], build, "OFL-1.1-Inter", text))
    for record in sorted(site.glob("*.dist-info"), key=lambda path: path.name.lower()):
        metadata = HeaderParser().parsestr((record / "METADATA").read_text(encoding="utf-8"))
        if metadata["Name"] != "tkperf":
            paragraphs.append(_describe_package(record, metadata, build))
    file.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")


def _describe_package(record: Path, metadata: Message, build: Path) -> str:
    name = metadata["Name"]
    license_name = find_license(metadata)
    texts = [path for path in sorted(record.rglob("*")) if path.is_file() and _LICENSE_FILES.match(path.name)]
    if license_name is None or not texts:
        raise InstallError(f"the package {name} does not contain its license, which a Debian package must name")
    text = "\n\n".join(_text_of(path, record) for path in texts)
    source = next((value for key, value in metadata.items() if key == "Home-page"), "")
    source = source or next(
        (url for label, url in _urls(metadata) if label in ("source", "repository", "homepage")), ""
    )
    note = f"{name} {metadata['Version']}" + (f", {source}" if source else "")
    # None of the licenses in Debian's list applies to a package that bundles other packages. The text of each license
    # therefore belongs to its package.
    return _paragraph(_folders_of(record), build, f"{_short(license_name)}-{name}", text, note)


def find_license(metadata: Message) -> str | None:
    """Return the license that a package names: an expression, a short text, or a classifier of the package index."""
    if expression := metadata["License-Expression"]:
        return str(expression)
    if (text := metadata["License"]) and "\n" not in text and len(text) < 60:
        return str(text)
    for classifier in metadata.get_all("Classifier") or ():
        if classifier.startswith("License :: "):
            return str(classifier).rpartition(" :: ")[2].removesuffix(" License")
    return None


def _short(license_name: str) -> str:
    """Return a license as one word, as the format requires."""
    return re.sub(r"[^A-Za-z0-9.+]+", "-", license_name)


def _urls(metadata: Message) -> Iterator[tuple[str, str]]:
    for text in metadata.get_all("Project-URL") or ():
        label, _, url = str(text).partition(",")
        yield label.strip().lower(), url.strip()


def _folders_of(record: Path) -> list[Path]:
    """Return the files and folders of a package, directly below the folder of all packages."""
    site = record.parent
    rows = (record / "RECORD").read_text(encoding="utf-8").splitlines()
    names = {row.lstrip('"').partition("/")[0].partition(",")[0] for row in rows}
    return [site / name for name in sorted(names | {record.name}) if name not in ("..", "__pycache__")]


def _paragraph(paths: list[Path], build: Path, license_name: str, text: str, comment: str = "") -> str:
    files = "\n ".join(f"{path.relative_to(build)}{'/*' if path.is_dir() else ''}" for path in paths)
    owners = "\n ".join(_owners(text)) or "see the text of the license"
    lines = [f"Files: {files}", f"Copyright: {owners}", f"License: {license_name}{_indented(text)}"]
    if comment:
        lines.append(f"Comment: {comment}")
    return "\n".join(lines)


def _owners(text: str) -> list[str]:
    """Return the lines of a license that name a copyright owner."""
    found = (match[1].strip() for line in text.splitlines() if (match := _COPYRIGHT.match(line)))
    return list(dict.fromkeys(owner for owner in found if owner and not _NO_OWNER.match(owner)))


def _text_of(path: Path, record: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace").strip()
    for place, pattern in _COMMON_TEXTS.items():
        text = pattern.sub(f"The text of this license is in {place}.", text)
    return f"{path.relative_to(record)}:\n\n{text}"


def _indented(text: str) -> str:
    """Return a text as the continuation lines of a field. A point stands for an empty line."""
    return "".join(f"\n {line.rstrip()}" if line.strip() else "\n ." for line in text.strip().splitlines())
