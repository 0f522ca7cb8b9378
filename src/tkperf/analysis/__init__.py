"""Functions that compute results from the records of a run. Tables, charts and exports take all numbers from these
results. The functions have no side effects.
"""
