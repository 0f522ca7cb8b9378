"""The run file NAME.tkperf: one SQLite database, described in docs/run-file.md."""
