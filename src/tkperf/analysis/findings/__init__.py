"""What a run found, in sentences and in a handful of figures: the opening of every output.

Made of the results and of how tests plan to show them; no test is known by its name.
"""
