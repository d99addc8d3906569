"""Peers of version 1, libbroker's nodes, as leaves of the overlay behind the nodes they are connected to."""
