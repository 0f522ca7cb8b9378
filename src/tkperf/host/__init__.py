"""The host as a place to measure on: what would disturb a run (``audit``), and its settings (``tuning``)."""
