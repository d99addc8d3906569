"""Endpoints as users see them: the overlay's state machines, carried over TCP by the hub."""
