"""What the octets of keys and values mean: MessagePack, and the schemas of a registry."""
