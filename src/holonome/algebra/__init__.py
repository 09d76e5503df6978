"""Linear algebra in compiled loops."""
