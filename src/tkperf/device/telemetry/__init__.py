"""Reading drives' own logs during a run: hwmon, nvme-cli, smartctl; what they mean is in ``tkperf.model.telemetry``."""
