"""A browser that opens pages of the documentation."""

from tests.render.conftest import browser

__all__ = ["browser"]
