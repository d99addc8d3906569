"""The messages of Kafka Streams' own groups (KIP-1071)."""

from __future__ import annotations

from typing import Any

from dafka.broker.codec.messages.message_class import message_class

StreamsGroupHeartbeatRequest: Any = message_class("StreamsGroupHeartbeatRequest", __name__)
StreamsGroupHeartbeatResponse: Any = message_class("StreamsGroupHeartbeatResponse", __name__)
StreamsGroupDescribeRequest: Any = message_class("StreamsGroupDescribeRequest", __name__)
StreamsGroupDescribeResponse: Any = message_class("StreamsGroupDescribeResponse", __name__)
