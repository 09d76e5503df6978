"""Results of runs, and the files in which they are saved."""
