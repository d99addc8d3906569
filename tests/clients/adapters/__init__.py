"""Kafka clients behind one set of words."""

from clients.adapters.aio import Aiokafka
from clients.adapters.confluent import Confluent
from clients.adapters.java import Java
from clients.adapters.kafka_python import KafkaPython
from clients.adapters.kcat import Kcat

CLIENTS = [KafkaPython(), Confluent(), Aiokafka(), Kcat(), Java()]
