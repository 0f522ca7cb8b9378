"""TKperf 2.2's format: its tests and its loops; only their order gives values their meaning."""

from __future__ import annotations

IOPS_MIXES = (100, 95, 65, 50, 35, 5, 0)
IOPS_SIZES_KIB = (1024, 128, 64, 32, 16, 8, 4, 0.5)
LATENCY_MIXES = (100, 65, 0)
LATENCY_SIZES_KIB = (8, 4, 0.5)
THROUGHPUT_SIZES_KIB = (1024, 64, 8, 4, 0.5)
"""On a device with sectors of 4 KiB the last block size of each list is missing."""

# The tests in its files, and the profile table with the numbers of each.
TABLES = {"iops": "iops", "lat": "latency", "tp": "throughput", "writesat": "write_saturation"}
# The name of a run imported from such a file, in place of a profile name.
PROFILE_NAME = "TKperf XML"
