"""Figures of every kind as tables or charts of a page, independent of the test."""
