"""The machine on which tkperf runs: processes, facts and activity of the host, and control groups.

Only this package starts processes.
"""
