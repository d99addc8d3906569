"""Answers about metrics of clients (KIP-714): nothing is subscribed to, and what is sent is not kept.

Nothing is remembered of a client: its subscription follows from its id.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from crc32c import crc32c
from kafka.errors import (
    InvalidRequestError,
    TelemetryTooLargeError,
    UnknownSubscriptionIdError,
    UnsupportedCompressionTypeError,
)

from dafka.broker.codec.errors import error_code
from dafka.broker.codec.messages.telemetry import (
    GetTelemetrySubscriptionsResponse,
    PushTelemetryResponse,
)
from dafka.broker.interface.broker import BrokerInterface, Error
from dafka.broker.server.context import Context

PUSH_INTERVAL = 300_000  # milliseconds until a client asks again
METRICS_MAX_BYTES = 1024 * 1024
_COMPRESSIONS = (4, 3, 1, 2)  # zstd, lz4, gzip, snappy, in the order of preference
_UNCOMPRESSED = 0


def get_telemetry_subscriptions(broker: BrokerInterface, request: Any, context: Context) -> Any:
    client = request.client_instance_id or uuid4()
    return GetTelemetrySubscriptionsResponse(
        throttle_time_ms=0,
        error_code=0,
        client_instance_id=client,
        subscription_id=_subscription(client),
        accepted_compression_types=list(_COMPRESSIONS),
        push_interval_ms=PUSH_INTERVAL,
        telemetry_max_bytes=METRICS_MAX_BYTES,
        delta_temporality=True,
        requested_metrics=[],
    )


def push_telemetry(broker: BrokerInterface, request: Any, context: Context) -> Any:
    error: Error | None = None
    if request.client_instance_id is None:
        error = InvalidRequestError
    elif request.subscription_id != _subscription(request.client_instance_id):
        error = UnknownSubscriptionIdError
    elif request.compression_type not in (_UNCOMPRESSED, *_COMPRESSIONS):
        error = UnsupportedCompressionTypeError
    elif len(request.metrics) > METRICS_MAX_BYTES:
        error = TelemetryTooLargeError
    return PushTelemetryResponse(throttle_time_ms=0, error_code=error_code(error))


def _subscription(client: UUID) -> int:
    return int(crc32c(client.bytes)) & 0x7FFFFFFF
