"""Conversion of fio's job files to own workloads: each option is carried over, refused, or listed as not carried over."""
