"""Draw sentences, messages, docstrings and comments at random, so that an editor can judge the English.

    .venv/bin/python scripts/english_sample.py [COMMIT]

The hash of the commit (default: HEAD) is the seed of the draw, and the texts are those in the checkout. The same commit
therefore always leads to the same sample, and nobody can choose which texts are judged. The script prints 100 sentences
from README, the pages in docs/ and the newer decision records, 40 messages, and 60 docstrings and comments. The
generated pages of the reference contain the help of every command and the meaning of every key, so these texts are also
among the sentences.
"""

from __future__ import annotations

import ast
import io
import random
import re
import subprocess
import sys
import textwrap
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from refusal_messages import BLANK, template

ROOT = Path(__file__).parents[1]
SENTENCES, MESSAGES, NOTES = 100, 40, 60
LEAST_WORDS = 5
"""The least number of words in a text. Shorter texts are names and not sentences. Words in code and in the targets of
links do not count.
"""
OLD_DECISIONS = 36
"""The number of the newest decision record that keeps its original wording. The sample leaves out this record and all
earlier records.
"""
_NO_PROSE = re.compile(r"^(?:    |\||#|<|!\[|```)")
_END_OF_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`*\[(])")
_REASONED = re.compile(r"^(?:noqa|type:|pragma|pylint)")


def main() -> None:
    """Print the sample of a commit."""
    words = ["git", "rev-parse", *(sys.argv[1:] or ["HEAD"])]
    commit = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    chance = random.Random(commit)
    print(f"# Sample of commit {commit}")
    for title, count, texts in (
        ("Sentences", SENTENCES, find_sentences()),
        ("Messages", MESSAGES, find_messages()),
        ("Docstrings and comments", NOTES, find_notes()),
    ):
        unique = sorted(set(texts))
        print(f"\n## {title}: {count} of {len(unique)}\n")
        for number, (place, text) in enumerate(chance.sample(unique, count), start=1):
            print(textwrap.fill(f"{number}. {place}: {text}", 120, subsequent_indent="   "))


def find_sentences() -> Iterator[tuple[str, str]]:
    """Yield each sentence on the pages with the name of its page. Cells of tables that are long enough also count as
    sentences.
    """
    for page in find_pages():
        name = page.relative_to(ROOT).as_posix()
        for paragraph in split_page(page.read_text(encoding="utf-8")):
            for sentence in _END_OF_SENTENCE.split(paragraph):
                if is_long_enough(sentence):
                    yield name, sentence


def find_pages() -> list[Path]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if not re.match(r"\d+", page.name) or int(page.name[:4]) > OLD_DECISIONS]


def split_page(text: str) -> Iterator[str]:
    """Yield the paragraphs, the list items and the table cells of a page."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line.strip("|"))
            yield from (cell.strip() for cell in cells)
        begins = re.match(r"\s*(?:[-*]|\d+\.) ", line)
        if begins or not line.strip() or _NO_PROSE.match(line):
            if paragraph:
                yield " ".join(paragraph)
            paragraph = []
        if begins:
            paragraph.append(line[begins.end() :].strip())
        elif line.strip() and not _NO_PROSE.match(line):
            paragraph.append(line.strip())


def find_messages() -> Iterator[tuple[str, str]]:
    """Yield the texts of errors, objections, notes and warnings. The sign … replaces a name or a number."""
    for path, source in read_sources("src"):
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call) or not re.search(
                r"(?:Error|Objection|Warning|Note|Advice|Remark)$", ast.unparse(node.func)
            ):
                continue
            for argument in (*node.args, *(each.value for each in node.keywords)):
                text = template(argument)
                if is_long_enough(text):
                    yield path, re.sub(rf"{BLANK}( ?{BLANK})+", BLANK, text)


def find_notes() -> Iterator[tuple[str, str]]:
    """Yield each docstring, and each comment as a whole."""
    for path, source in (
        *read_sources("src"),
        *read_sources("tests"),
        *read_sources("scripts"),
        *read_sources("bench"),
    ):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = " ".join((ast.get_docstring(node) or "").split())
                if is_long_enough(text):
                    yield path, text
        yield from ((path, text) for text in join_comments(source) if is_long_enough(text))


def join_comments(source: str) -> Iterator[str]:
    """Yield the comments. Comments on consecutive lines count as one comment."""
    found = [
        token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == tokenize.COMMENT
    ]
    text, last = "", -1
    for token in found:
        line, words = token.start[0], token.string.lstrip("#! ")
        if _REASONED.match(words):
            continue
        if line == last + 1 and token.line.lstrip().startswith("#"):
            text += " " + words
        else:
            yield text
            text = words
        last = line
    yield text


def read_sources(folder: str) -> Iterable[tuple[str, str]]:
    """Yield the path and the text of each module below a folder."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def is_long_enough(text: str) -> bool:
    """Return whether a text has enough words, without code and the targets of links."""
    return len(re.findall(r"[A-Za-z]{2,}", re.sub(r"`[^`]*`|\]\([^)]*\)", "", text))) >= LEAST_WORDS


if __name__ == "__main__":
    main()
