"""From records to results: pure functions, the one source of tables, charts and exports."""
