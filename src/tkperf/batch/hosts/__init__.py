"""Batches over several hosts: a batch on each host, one question on this machine, and the combined results."""
