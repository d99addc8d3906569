"""Copies topics between Kafka and this project's broker, exactly, with a checkpoint."""
