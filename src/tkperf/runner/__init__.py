"""A run under way: what a procedure asks for is done, watched, and passed on as events; a run that stopped is replayed."""
