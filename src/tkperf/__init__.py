"""tkperf measures block devices by the SNIA Performance Test Specification."""

__version__ = "3.0.0.dev0"
