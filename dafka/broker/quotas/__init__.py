"""Quotas: which one counts for a client, what has been used of it, and where they are kept."""
