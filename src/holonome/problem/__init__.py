"""What the user states: systems, their functions, parameters, elements, events and drawings."""
