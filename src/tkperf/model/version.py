"""The version of tkperf, which every run file and output names."""

__version__ = "3.0.0.dev0"
