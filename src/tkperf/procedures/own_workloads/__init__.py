"""Tests that users define. A workload file describes such a test, and tkperf treats it as it treats any other test."""

from tkperf.procedures.own_workloads.read_workload import WHAT, parse_workload_file, read_workload_file, test_of

__all__ = ["WHAT", "parse_workload_file", "read_workload_file", "test_of"]
