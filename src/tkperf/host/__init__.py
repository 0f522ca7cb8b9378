"""The host as a place to measure on: what would disturb a run (``audit``), what is set for one (``tuning``)."""
