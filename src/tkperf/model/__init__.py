"""Pure data types that describe benchmarks: workloads, measurements, histograms, quantities, steady state, phases and
units.
"""
