"""The command line. This package is a thin layer over the Python API. Only this package prints, asks the user and
exits.
"""
