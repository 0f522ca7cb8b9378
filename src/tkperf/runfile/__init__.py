"""The run file NAME.tkperf, which is an SQLite database. docs/reference/run-file.md describes the file format."""
