"""Searches for the users of a device or file. They use facts from the kernel, and each kind of user has its own
module.
"""
