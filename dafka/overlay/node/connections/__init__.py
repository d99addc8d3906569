"""Connections to peers: how they are made, secured, read and written."""
