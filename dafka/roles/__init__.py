"""What each kind of node decides: plain state machines, no sockets, no threads, no clock."""
