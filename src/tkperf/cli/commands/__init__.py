"""Commands: arguments, options and help of each, and the call of its work.

These modules load nothing that takes time, so that help, completion and wrong calls are answered at once. A command
loads the modules of its work when it is called.
"""
