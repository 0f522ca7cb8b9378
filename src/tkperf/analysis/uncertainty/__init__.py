"""Uncertainty of a figure. An uncertainty consists of the standard uncertainty, the 95 % interval, and the kind of
values from which the uncertainty and the interval are computed.

The terms are those of the GUM (JCGM 100:2008). The section "Uncertainty" in docs/explanation/method.md describes the
methods and names the sources.
"""
