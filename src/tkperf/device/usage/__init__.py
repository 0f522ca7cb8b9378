"""Who uses a device or file, by the kernel's word: one module for each kind of user."""
