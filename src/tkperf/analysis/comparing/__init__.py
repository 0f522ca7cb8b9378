"""Compare runs, a cohort of drives, or one drive over time: the differences, and how certain they are."""
