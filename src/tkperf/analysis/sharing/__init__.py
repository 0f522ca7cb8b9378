"""Things that the drives of one host share: groups that run at the same time, their CPUs, and the comparison of
reads.
"""
