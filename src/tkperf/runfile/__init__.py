"""The run file NAME.tkperf: one SQLite database, described in docs/reference/run-file.md."""
