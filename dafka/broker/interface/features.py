"""The part of the broker interface about features (KIP-584): which protocols a cluster has on, and how far.

Clients read the levels in the answer to ApiVersions, and choose by them how they write transactions or join
groups. A feature without a level is off, which is level 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from dafka.broker.interface.outcome import Outcome


class UpgradeType(IntEnum):
    """How far a change of a level may go; Kafka's numbers (FeatureUpdate.UpgradeType)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The level that a feature is to have."""

    level: int
    type: int = UpgradeType.UPGRADE


class Features(NamedTuple):
    """The levels that can be had, lowest and highest, and those that are on; ``epoch`` goes up with each
    change of these."""

    epoch: int
    supported: Mapping[str, tuple[int, int]]
    levels: Mapping[str, int]


class FeatureInterface(ABC):
    """The features of a cluster."""

    @abstractmethod
    def features(self) -> Features:
        """The features and their levels."""

    @abstractmethod
    def update_features(self, updates: Mapping[str, FeatureUpdate], validate_only: bool = False) -> Outcome:
        """Change levels, durably: all of them or none.

        Errors: InvalidUpdateVersionError, whose detail says which feature and why, KafkaStorageError.
        """
