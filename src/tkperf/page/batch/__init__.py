"""Build the pages of a batch: its plan, its progress and its results."""
