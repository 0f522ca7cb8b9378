"""Pages of a batch: its plan, its progress, its results."""
