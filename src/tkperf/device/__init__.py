"""The device under test: who it is, whether it may be erased, how it is purged."""
