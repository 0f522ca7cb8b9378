"""Uncertainty of a figure: standard uncertainty, the interval of 95 % coverage, and their basis.

Terms are from the GUM (JCGM 100:2008); docs/explanation/method.md, uncertainty, has methods and sources.
"""
