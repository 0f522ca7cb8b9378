"""Batches over hosts: a batch on each host, one question here, their answers together."""
