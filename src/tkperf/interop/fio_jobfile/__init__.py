"""Job files of fio as own workloads of tkperf: read as fio reads them, kept option by option, or refused."""
