"""Searches for the users of a device or file. The searches use facts from the kernel. Each kind of user has its own
module.
"""
