"""README.md is one that a stranger reads at once."""

from __future__ import annotations

from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_readme_stays_short() -> None:
    """At most 1,400 words: what it has no room for is in docs/, found through docs/index.md."""
    assert len(README.split()) <= 1400
    assert "](docs/index.md)" in README


def test_the_two_commands_are_there() -> None:
    """Each with the script that does the same without make."""
    for name in ("demo", "test"):
        assert f"make {name}" in README
        assert f"sh scripts/{name}.sh" in README
