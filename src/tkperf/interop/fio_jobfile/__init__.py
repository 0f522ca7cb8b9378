"""The conversion of fio's job files to workload files. Each option is either carried over, refused, or listed as not
carried over.
"""
