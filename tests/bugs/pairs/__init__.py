"""The pairs, a file for each kind of mechanism."""
