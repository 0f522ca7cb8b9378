"""Batches over hosts: a batch on each host, one question on this machine, and the answers together."""
