"""The device under test: its identity, the checks before tkperf erases the device, and the purge."""
