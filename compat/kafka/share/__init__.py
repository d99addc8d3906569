"""Share groups (KIP-932): members that read a topic as a queue.

    from compat.kafka.share import AcknowledgeType, ShareConsumer

kafka-python has nothing like it; :class:`ShareConsumer` is Kafka's KafkaShareConsumer in its manner.
"""

from __future__ import annotations

from compat.kafka.share._records import ShareRecord
from compat.kafka.share.consumer import ShareConsumer
from dafka.broker.interface.share import AcknowledgeType

__all__ = ["AcknowledgeType", "ShareConsumer", "ShareRecord"]
