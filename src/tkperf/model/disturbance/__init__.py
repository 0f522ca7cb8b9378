"""Facts about disturbances between a step and the device: I/O and CPU time of other programs, idle time, and trouble of
the device.

Only numbers decide. The reason for each limit is in a comment next to the limit. ``bench/disturbance.py`` measures how
many disturbances tkperf finds with these limits, and how many of its findings are false.
"""
