"""The charts of a PDF as SVG, drawn from their Vega-Lite specifications as Vega draws them."""
