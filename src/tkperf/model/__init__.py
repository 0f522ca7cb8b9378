"""The words of the field as pure data: workload, measurement, histogram, quantity, steady state, phases, units ..."""
