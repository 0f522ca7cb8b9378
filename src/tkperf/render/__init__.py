"""Outputs: HTML, print, terminal, Markdown, CSV, JSON, Parquet, series. Only commands that write an output load its
module.
"""
