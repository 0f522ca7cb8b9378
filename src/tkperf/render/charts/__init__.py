"""Charts as Vega-Lite specifications, the same for page and print. The modules are pure."""
