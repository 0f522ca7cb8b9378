"""Build tables of results."""
