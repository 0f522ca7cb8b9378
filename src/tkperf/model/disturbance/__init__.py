"""The detection of disturbances of a step: I/O and CPU time of other programs, idle time, and errors of the device.

Only measured numbers decide whether a step was disturbed. A comment next to each limit gives the reason for the limit.
``bench/disturbance.py`` measures how many disturbances tkperf finds with these limits, and how many of the findings are
false.
"""
