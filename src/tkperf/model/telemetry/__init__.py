"""Parse the data that drives report about themselves: temperature, throttling, wear and bytes written. These modules
only parse and have no side effects. See docs/explanation/telemetry.md.
"""
