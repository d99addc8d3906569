"""Who is reachable over which paths, who wants what, and the way of a message to all of them."""
