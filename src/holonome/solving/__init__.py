"""A call of solve: arguments, start, run, result."""
