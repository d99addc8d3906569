"""Looking into any broker through its interface: what the terminal and the console both need."""
