"""The compiled parts that every method shares.  Nothing here knows a model, a method or the user."""
