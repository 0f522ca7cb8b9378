"""The host on which tkperf measures. ``audit`` finds conditions that disturb a run, ``settings`` lists the settings
that should change, and ``tuning`` changes and restores these settings.
"""
