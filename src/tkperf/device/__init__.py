"""The device under test: its identity, the checks before erasing it, and its purge."""
