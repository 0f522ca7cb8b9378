"""A running run: phases are performed, watched, and passed on as events; a run that stopped is replayed."""
