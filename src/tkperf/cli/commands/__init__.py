"""The commands. Each module defines the arguments, options and help of its commands, and calls the code that does the
work.

These modules load nothing that takes time, so that help, completion and wrong calls are answered at once. A command
loads the modules of its work when it is called.
"""
