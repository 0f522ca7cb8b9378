"""The environment that all pages of HTML are rendered in."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def make_environment(package: str) -> Environment:
    """Return an environment with the templates of a package: every text is escaped, every name must be known."""
    return Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
