"""The device under test: its identity, the checks before it is erased, and its purge."""
