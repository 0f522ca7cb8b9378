"""Parsers for the data that drives report about themselves: temperature, throttling, wear and bytes written. These
modules have no side effects. See docs/explanation/telemetry.md.
"""
