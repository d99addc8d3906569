"""Channels: one producer, any number of consumers, over a transport that loses and reorders messages."""
