"""The run file NAME.tkperf, which is one SQLite database. docs/reference/run-file.md describes it."""
