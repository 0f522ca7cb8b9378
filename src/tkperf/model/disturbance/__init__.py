"""Disturbances between a step and the device as facts: others' I/O and CPU time, idle time, a device in trouble.

Numbers alone decide. The reason of a limit is next to it; ``bench/disturbance.py`` measures how
many disturbances are found with these limits, and how many findings were none.
"""
