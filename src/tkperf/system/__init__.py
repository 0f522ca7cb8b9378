"""The machine on which tkperf runs: the only module that starts processes, looks at the host, and control groups."""
