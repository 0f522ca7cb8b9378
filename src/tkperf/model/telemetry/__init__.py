"""Data that drives report: temperature, throttling, wear, bytes written. Pure; docs/explanation/telemetry.md."""
