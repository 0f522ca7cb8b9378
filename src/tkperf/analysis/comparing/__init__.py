"""Runs beside each other, a cohort of drives, one drive over time: what differs, and how sure that is."""
