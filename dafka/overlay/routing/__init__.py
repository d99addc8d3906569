"""Which nodes are reachable over which paths, what they subscribe to, and the route of a message."""
