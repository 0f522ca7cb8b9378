"""The command line. It is a thin layer over the Python API, and the only code that prints, asks and exits."""
