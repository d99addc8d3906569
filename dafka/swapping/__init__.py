"""Rewrites a code base to import compat.kafka where it imported kafka (kafka-python), and back."""
