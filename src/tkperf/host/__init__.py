"""The host as a place to measure on: what would disturb a run (``audit``), its ``settings``, their ``tuning``."""
