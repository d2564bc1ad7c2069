"""The four kinds of patch, and what they leave of an object."""
