"""Compare two or more runs: their differences, and which of these exceed the noise.

Each value has an uncertainty, and so has the ratio of two values: if its 95 % interval contains 1, the difference is
reported as within noise. If a value can have no uncertainty, such as a maximum, the ranges of the rounds decide.
Separate ranges are a difference. Overlapping ranges are noise if both are over a window that was judged steady or over
one phase of a stream. Other overlapping ranges, over areas of a disk, a stream's slices or unsteady rounds, are not
noise and predict nothing about a second measurement.

Runs are compared with the first; drives of one model form a cohort, and runs of one drive form a history.
"""
