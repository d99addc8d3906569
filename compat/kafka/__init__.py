"""kafka-python's classes over a broker in this process, or over TCP.

    from compat.kafka import KafkaConsumer, KafkaProducer

The names, modules, exceptions and structures are those of the package ``kafka`` (kafka-python 3), which
is installed beside this one and of which everything but the three clients is used as it is; see
:mod:`compat.kafka._mirror`. The producer, the consumer and the admin client have kafka-python's methods,
configuration keys, return types, exceptions and blocking behaviour; underneath they call
:mod:`dafka.broker` through the hub.

``bootstrap_servers`` is a broker of this process (``dafka.Broker().bootstrap_servers``), which is called
directly, or any other address, which is connected to. With ``DAFKA_EMBEDDED=DIR`` in the environment every
address means one broker of this process with its data in DIR. Configuration of a network connection's details
(sockets, proxies, reconnecting) is accepted and has no effect; ``security_protocol`` and ``ssl_...`` count
for addresses outside of this process.
"""

from __future__ import annotations

import logging

from compat.kafka import _mirror

logging.getLogger(__name__).addHandler(logging.NullHandler())

_mirror.install()

from kafka import (  # noqa: E402  (the finder has to be there before anything below imports)
    AsyncConsumerRebalanceListener,
    ConsumerGroupMetadata,
    ConsumerRebalanceListener,
    DefaultSerializer,
    Deserializer,
    IsolationLevel,
    JsonSerializer,
    OffsetAndMetadata,
    OffsetSpec,
    Serializer,
    TopicPartition,
    TopicPartitionReplica,
    __version__,
)

from compat.kafka._install import install as install  # noqa: E402
from compat.kafka._install import uninstall as uninstall  # noqa: E402
from compat.kafka.admin import KafkaAdminClient  # noqa: E402
from compat.kafka.consumer import KafkaConsumer  # noqa: E402
from compat.kafka.producer import KafkaProducer  # noqa: E402

__all__ = [
    "AsyncConsumerRebalanceListener",
    "ConsumerGroupMetadata",
    "ConsumerRebalanceListener",
    "DefaultSerializer",
    "Deserializer",
    "IsolationLevel",
    "JsonSerializer",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaProducer",
    "OffsetAndMetadata",
    "OffsetSpec",
    "Serializer",
    "TopicPartition",
    "TopicPartitionReplica",
    "__version__",
]

__getattr__ = _mirror.counterpart_names(__name__)
