"""Words for results, the same in every output."""
