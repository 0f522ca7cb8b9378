"""A browser for the pages."""

from tests.render.conftest import browser

__all__ = ["browser"]
