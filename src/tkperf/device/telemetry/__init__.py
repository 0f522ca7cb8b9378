"""Readers of drives' own logs during a run: hwmon, nvme-cli, smartctl; ``tkperf.model.telemetry`` interprets them."""
