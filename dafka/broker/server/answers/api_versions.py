"""ApiVersions: the supported APIs with their versions, and the features."""

from __future__ import annotations

import re
from typing import Any

from kafka.errors import InvalidRequestError

from dafka.broker.interface.broker import BrokerInterface
from dafka.broker.interface.features import Features
from dafka.broker.server.answers.naming import version_of
from dafka.broker.server.context import Context
from dafka.broker.server.table import API_VERSIONS, BY_KEY

_NO_FEATURES = Features(-1, {}, {})
_NAMED = 3  # since then clients say what they are
_FROM_0 = 4  # since then clients know that a feature may have level 0; the older ones of Java end with it
_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def announced(broker: BrokerInterface, request: Any, context: Context) -> Any:
    """The answer to ApiVersions."""
    version = version_of(request)
    if version >= _NAMED:
        for name in (request.client_software_name, request.client_software_version):
            if not _NAME.fullmatch(name or ""):
                response = api_versions(InvalidRequestError.errno)
                response.api_keys = []
                return response
    features = broker.features()
    if version < _FROM_0:
        known = {name: levels for name, levels in features.supported.items() if levels[0] > 0}
        features = features._replace(supported=known)
    return api_versions(0, features)


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
