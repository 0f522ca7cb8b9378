"""Conversion of fio's job files to workload files. Each option is carried over, refused, or listed as not
carried over.
"""
