"""The machine that tkperf runs on: the one module that starts processes, looks at the host, control groups."""
