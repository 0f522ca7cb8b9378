"""The machine that tkperf runs on: the only module that starts processes, looks at the host, control groups."""
