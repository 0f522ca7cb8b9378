"""Compare two or more runs, and decide which differences exceed the noise.

Each value and each ratio of two values has an uncertainty. If the 95 % interval of the ratio contains 1, the difference
is reported as within noise. If the uncertainty of a value cannot be computed, as for a maximum, the ranges over the
rounds decide. Separate ranges show a difference. Overlapping ranges show noise if each range covers a steady window or
one phase of a stream. Overlapping ranges over the areas of a disk, the slices of a stream or unsteady rounds decide
nothing, because such ranges do not predict a second measurement.

By default, each run is compared with the first run. Runs of several drives of one model form a cohort, and several runs
of one drive form a history.
"""
