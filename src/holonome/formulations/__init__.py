"""Formulations: what is solved in place of the constrained equations.  One file each."""
