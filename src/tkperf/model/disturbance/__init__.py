"""What came between a step and the device, as facts: others' I/O and CPU time, idle time, a device in trouble.

Decided from numbers alone. A limit has its reason beside it; ``bench/disturbance.py`` measures how
many disturbances are found with these limits, and how many are found that were none.
"""
