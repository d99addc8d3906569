"""Bridges: topics of the overlay and topics of Kafka, and brokers at different sites that share theirs."""
