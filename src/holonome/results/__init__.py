"""What comes out of a run, and the files that keep it."""
