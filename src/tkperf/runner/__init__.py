"""The execution of a run: its phases are performed, watched and reported as events. After an interruption, the run is
replayed.
"""
