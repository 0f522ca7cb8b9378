"""Conversion of fio's job files to own workloads: options are carried over, refused, or listed as not carried over."""
