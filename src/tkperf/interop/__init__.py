"""The import of results from other tools. tkperf reads the results strictly, judges them again, and marks them as
imported.

An importer converts a file into the records of a run, and the command line writes these records to a run file. Values
that the other tool did not record remain "not measured".
"""

# The name of a test whose results were imported from files of fio.
FIO_TEST = "fio"

# The read percentages of the loops of TKperf 2.2. Its files do not contain these values. Only the order of the results
# shows which value applies.
IOPS_MIXES = (100, 95, 65, 50, 35, 5, 0)
IOPS_SIZES_KIB = (1024, 128, 64, 32, 16, 8, 4, 0.5)
LATENCY_MIXES = (100, 65, 0)
LATENCY_SIZES_KIB = (8, 4, 0.5)
THROUGHPUT_SIZES_KIB = (1024, 64, 8, 4, 0.5)
"""The block sizes of the throughput test of TKperf 2.2. On a device with sectors of 4 KiB, the last size of each list
is missing.
"""
# The tests in files of TKperf, and the profile table that contains the numbers of each test.
TKPERF_TABLES = {"iops": "iops", "lat": "latency", "tp": "throughput", "writesat": "write_saturation"}
# The profile name of a run that was imported from such a file.
TKPERF_PROFILE = "TKperf XML"
