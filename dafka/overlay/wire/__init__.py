"""Zeek Broker's messages and those among our own nodes: bytes to objects and back."""
