"""What drives tell of themselves: temperature, throttling, wear, what they wrote. Pure; docs/telemetry.md."""
