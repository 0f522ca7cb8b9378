"""Write the outputs: HTML, printed reports, terminal, Markdown, CSV, JSON, Parquet and series.

A command loads the module of an output only if the command writes this output.
"""
