"""What a series shows over time: levels, sudden drops, spikes that come back. Pure."""
