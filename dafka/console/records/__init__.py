"""Records as the console reads, finds, follows and writes them."""
