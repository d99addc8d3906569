"""The messages with which a broker asks for clients' metrics, and gets them (KIP-714)."""

from __future__ import annotations

from typing import Any

from dafka.broker.codec.messages.message_class import message_class

GetTelemetrySubscriptionsRequest: Any = message_class("GetTelemetrySubscriptionsRequest", __name__)
GetTelemetrySubscriptionsResponse: Any = message_class("GetTelemetrySubscriptionsResponse", __name__)
PushTelemetryRequest: Any = message_class("PushTelemetryRequest", __name__)
PushTelemetryResponse: Any = message_class("PushTelemetryResponse", __name__)
