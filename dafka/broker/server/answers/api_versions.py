"""ApiVersions: the supported APIs with their versions, and the features."""

from __future__ import annotations

from typing import Any

from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.features import Features
from dafka.broker.server.context import Context
from dafka.broker.server.table import API_VERSIONS, BY_KEY

_NO_FEATURES = Features(-1, {}, {})


def announced(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The answer to ApiVersions."""
    return api_versions(0, broker.features())


def api_versions(error_code: int, features: Features = _NO_FEATURES) -> Any:
    """The response with this error code. Features are in version 3 and above only."""
    response = BY_KEY[API_VERSIONS].response
    return response(
        error_code=error_code,
        throttle_time_ms=0,
        api_keys=[
            response.ApiVersion(api_key=api.key, min_version=api.first, max_version=api.last)
            for api in BY_KEY.values()
        ],
        supported_features=[
            response.SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in features.supported.items()
        ],
        finalized_features_epoch=features.epoch,
        finalized_features=[
            response.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in features.levels.items()
        ],
    )
