"""Results from records: pure functions that tables, charts and exports all take their numbers from."""
