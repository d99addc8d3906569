"""ZPController: what the nodes of a cluster know of each other. It informs and decides nothing."""
