"""Results from records: functions without side effects, from which tables, charts and exports take all their
numbers.
"""
