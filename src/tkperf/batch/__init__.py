"""The measurement of many drives on one host: one plan, one question, a process and a run file for each drive, and one
result.
"""
