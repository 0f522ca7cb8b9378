"""The version of tkperf, which every run file and every output states."""

__version__ = "3.0.0.dev0"
