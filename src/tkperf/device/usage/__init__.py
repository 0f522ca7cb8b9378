"""Searches for users of a device or file in the kernel's facts, with one module for each kind of user."""
