"""Data stores: a master, its clones, and what they say to each other over channels."""
