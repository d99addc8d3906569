"""The admin client: ``KafkaAdminClient`` and what its methods take, as in ``kafka.admin``."""

from __future__ import annotations

import kafka.admin as _theirs

from compat.kafka._mirror import counterpart_names
from compat.kafka.admin.client import KafkaAdminClient

__all__ = ["KafkaAdminClient", *(name for name in _theirs.__all__ if name != "KafkaAdminClient")]

__getattr__ = counterpart_names(__name__)

# Everything but the client is kafka-python's own; named here so that ``import *`` finds it.
globals().update({name: getattr(_theirs, name) for name in __all__ if name != "KafkaAdminClient"})
globals().update({name: getattr(_theirs, name) for name in ("NewTopic", "NewPartitions")})
