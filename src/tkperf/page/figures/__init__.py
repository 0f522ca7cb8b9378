"""Build the figures of every kind as tables or charts of a page. No code in this package depends on a single test."""
