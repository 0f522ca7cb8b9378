"""Tests of the user's own: a workload file describes a test, which then is like any other."""

from tkperf.procedures.own_workloads.read_workload import WHAT, parse_workload_file, read_workload_file, test_of

__all__ = ["WHAT", "parse_workload_file", "read_workload_file", "test_of"]
