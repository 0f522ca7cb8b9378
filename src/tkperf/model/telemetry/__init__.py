"""Data that drives report: temperature, throttling, wear, bytes written. The modules are pure; see
docs/explanation/telemetry.md."""
