"""How far a figure can be trusted: standard uncertainty and the interval of 95 % coverage, and from what.

Terms are those of the GUM (JCGM 100:2008); docs/method.md, uncertainty, has methods and sources.
"""
