"""The messages of consumer groups whose assignment the broker computes (KIP-848)."""

from __future__ import annotations

from typing import Any

from dafka.broker.codec.messages.message_class import message_class

ConsumerGroupHeartbeatRequest: Any = message_class("ConsumerGroupHeartbeatRequest", __name__)
ConsumerGroupHeartbeatResponse: Any = message_class("ConsumerGroupHeartbeatResponse", __name__)
ConsumerGroupDescribeRequest: Any = message_class("ConsumerGroupDescribeRequest", __name__)
ConsumerGroupDescribeResponse: Any = message_class("ConsumerGroupDescribeResponse", __name__)
