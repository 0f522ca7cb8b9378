"""A comparison of runs as it is shown: findings, tables, charts."""
