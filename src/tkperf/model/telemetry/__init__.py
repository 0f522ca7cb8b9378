"""Data that drives report about themselves: temperature, throttling, wear, bytes written. The modules have no side
effects; see docs/explanation/telemetry.md.
"""
