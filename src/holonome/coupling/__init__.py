"""Systems that are coupled by constraints and solved each by its own solver."""
