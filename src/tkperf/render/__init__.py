"""Outputs: HTML, print, terminal, Markdown, CSV, JSON, Parquet, series. Loaded only by the commands that write them."""
