"""Job files of fio as own workloads of tkperf: options are carried over, refused, or named as not carried over."""
