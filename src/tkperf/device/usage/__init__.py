"""Users of a device or file, from the kernel's facts: one module for each kind of user."""
