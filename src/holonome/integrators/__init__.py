"""Integrators: how a formulation is advanced in time.  One file each."""
