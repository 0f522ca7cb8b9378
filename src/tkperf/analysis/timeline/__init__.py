"""Analysis of a series over time: levels, sudden drops, periodic spikes. The modules have no side effects."""
