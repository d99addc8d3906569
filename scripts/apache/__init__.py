"""One node of Apache Kafka on loopback, for tests and benchmarks: its jars, and the running of it."""
