"""The version of tkperf, which every run file and every output contains."""

try:
    # scripts/hatch_build.py writes this module when tkperf is built or installed.
    from tkperf.model import built_version
except ImportError:  # the sources were never installed
    __version__ = "3.0.0.dev0"
else:
    __version__ = built_version.__version__
