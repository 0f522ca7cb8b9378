"""The browser fixture for the tests of pages."""

from tests.render.conftest import browser

__all__ = ["browser"]
