"""Build the figures of every kind as tables or charts of a page. The code in this package does not depend on any
particular test.
"""
