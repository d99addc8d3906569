"""Members of groups whose assignment the broker computes: ``group_protocol="consumer"`` (KIP-848)."""
