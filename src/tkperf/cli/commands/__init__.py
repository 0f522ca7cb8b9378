"""Every command as it is called: its arguments, options and help, and what it does when it is.

These modules load nothing that takes time, so that help, completion and wrong calls are answered at once; what a
command works with is loaded when it is called.
"""
