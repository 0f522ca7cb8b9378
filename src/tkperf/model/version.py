"""The version of tkperf; every run file and output names it."""

__version__ = "3.0.0.dev0"
