"""The command line: a thin skin. The only place that prints, asks and exits."""
