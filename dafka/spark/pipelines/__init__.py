"""Pipelines: small programs over the data source, run with ``dafka pipeline NAME`` or ``spark-submit``."""
