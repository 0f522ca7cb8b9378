"""The commands. Each module defines the arguments, the options and the help of its commands, and calls the code that
does the work.

These modules import only code that loads quickly, so that help, completion and messages about wrong calls appear at
once. When a command is called, it imports the modules that it needs.
"""
