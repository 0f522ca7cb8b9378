"""A run that is under way: phases are performed, watched, and reported as events. A run that stopped is replayed."""
