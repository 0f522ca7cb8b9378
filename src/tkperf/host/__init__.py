"""The host on which tkperf measures: the ``audit`` of conditions that disturb a run, ``settings`` and ``tuning``."""
