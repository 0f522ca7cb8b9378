"""Build charts as Vega-Lite specifications, which are the same for screen and print. The modules have no side
effects.
"""
