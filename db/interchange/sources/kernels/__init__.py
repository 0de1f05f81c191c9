"""What tools write that time kernels, single functions and engines."""
