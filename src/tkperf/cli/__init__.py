"""The command line: a thin layer, and the only code that prints, asks and exits."""
