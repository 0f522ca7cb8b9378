"""Figures of every kind, as tables or charts of a page. No code here depends on the test."""
