"""The host on which tkperf measures: conditions that would disturb a run (``audit``), ``settings``, and ``tuning``."""
