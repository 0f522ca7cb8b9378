"""The measurement of many drives on one host or on several hosts: one plan, one question, a process and a run file for
each drive, and one result.
"""
