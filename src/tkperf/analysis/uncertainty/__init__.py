"""Uncertainty of a figure: the standard uncertainty, the 95 % interval, and the basis on which both are computed.

The terms are those of the GUM (JCGM 100:2008). The section "Uncertainty" in docs/explanation/method.md contains the
methods and sources.
"""
