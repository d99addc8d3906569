"""The features of a cluster over TCP."""

from __future__ import annotations

from collections.abc import Mapping

from kafka.errors import KafkaError
from kafka.protocol.admin.cluster import UpdateFeaturesRequest
from kafka.protocol.metadata import ApiVersionsRequest

from dafka.broker.codec.errors import error_of
from dafka.broker.interface.features import FeatureInterface, Features, FeatureUpdate, UpgradeType
from dafka.broker.interface.outcome import Outcome
from dafka.broker.remote.cluster import Cluster
from dafka.broker.remote.connection import CLIENT_ID
from dafka.broker.remote.controller import failed


class RemoteFeatures(FeatureInterface):
    """The features of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def features(self) -> Features:
        """Raises KafkaError: the cluster cannot be asked."""
        request = ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version="1")
        response = self._cluster.ask_any(request, lowest=3)
        return Features(
            response.finalized_features_epoch,
            {one.name: (one.min_version, one.max_version) for one in response.supported_features},
            {one.name: one.max_version_level for one in response.finalized_features},
        )

    def update_features(self, updates: Mapping[str, FeatureUpdate], validate_only: bool = False) -> Outcome:
        request = UpdateFeaturesRequest(
            timeout_ms=int(self._cluster.request_timeout * 1000),
            feature_updates=[
                UpdateFeaturesRequest.FeatureUpdateKey(
                    feature=name,
                    max_version_level=update.level,
                    allow_downgrade=update.type != UpgradeType.UPGRADE,
                    upgrade_type=int(update.type),
                )
                for name, update in updates.items()
            ],
            validate_only=validate_only,
        )
        try:
            response = self._cluster.ask(self._cluster.controller(), request, wait=0.0)
        except KafkaError as error:
            return Outcome(failed(error), str(error))
        return Outcome(error_of(response.error_code), response.error_message or "")
