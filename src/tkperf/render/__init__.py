"""Outputs: HTML, print, terminal, Markdown, CSV, JSON, Parquet, series. Only the commands that write them load them."""
