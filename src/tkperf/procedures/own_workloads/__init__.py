"""Tests of the user's own: a workload file describes one, which then is a test like any other."""
