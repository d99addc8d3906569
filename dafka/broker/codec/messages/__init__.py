"""Messages of Kafka's protocol for which kafka-python has no class.

One folder for each subject. A message is a JSON file in the form that kafka-python's own messages have: the
fields by name and type, since which version each is there, may be null, or is a tagged field. The fields and
versions are those that Apache Kafka 4.3.1 has.
"""
