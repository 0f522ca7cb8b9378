"""Findings of a run as sentences and a few figures: they open every output.

Their sources are the results and the tests' plans of figures; no code here depends on a test's name.
"""
