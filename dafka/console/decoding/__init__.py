"""Decoding keys and values: MessagePack, and the schemas of a registry."""
