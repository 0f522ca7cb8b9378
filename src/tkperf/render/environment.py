"""Define the environment in which all HTML pages are rendered."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def make_environment(package: str) -> Environment:
    """Return an environment with the templates of a package. The environment escapes every text, and raises an error if
    a template uses an unknown name.
    """
    return Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
