"""The features of this broker, and their levels, in the log's table ``features``.

A folder that has no level for a feature gets the one of :data:`SUPPORTED`, so that a new feature is on as
soon as the broker has it. Allowed changes are those of Kafka's FeatureControlManager at metadata version 4.3:
any level of a feature goes up and down, but for ``metadata.version`` and ``kraft.version``, which only go up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from gevent.lock import BoundedSemaphore
from kafka.errors import InvalidUpdateVersionError, KafkaStorageError, UnsupportedVersionError

from dafka.broker.interface.features import FeatureInterface, Features, FeatureUpdate, UpgradeType
from dafka.broker.interface.outcome import Outcome
from dafka.commit.writer import Writer
from dafka.hub.completion import run_to_completion
from dafka.hub.hub import Hub
from dafka.log import Log, LogError, shapes
from dafka.log.repeating import bounded_logger

log = bounded_logger(__name__)

FEATURES, EPOCH, LEVELS = "features", "epoch", "levels"
ELR = "eligible.leader.replicas.version"


class Supported(NamedTuple):
    """The lowest and the highest level of a feature, and the one that a new folder gets."""

    lowest: int
    highest: int
    initial: int


SUPPORTED: Mapping[str, Supported] = {
    "metadata.version": Supported(7, 30, 30),  # 3.3-IV3 to 4.3-IV0
    "kraft.version": Supported(0, 1, 0),
    "transaction.version": Supported(0, 2, 2),
    ELR: Supported(0, 1, 1),
    "group.version": Supported(0, 1, 1),
    "share.version": Supported(0, 1, 1),
    "streams.version": Supported(0, 1, 1),
}
"""Features of a one-node Kafka 4.3 that this broker has. A feature goes here once it works: clients take
its level for a promise."""

_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
    "downgrade."
)
_DELETES = "Refusing to perform the requested downgrade because it might delete metadata information."
_UNSAFE = "Unsafe metadata downgrade is not supported in this version."


class FeatureTable(FeatureInterface):
    """The levels of one broker's features. Hub side."""

    def __init__(self, hub: Hub, log: Log, writer: Writer, node_id: int) -> None:
        self._hub = hub
        self._writer = writer
        self._node_id = node_id
        levels = shapes.mapping_of(shapes.natural)
        table = log.table(FEATURES, shapes.named_rows(**{EPOCH: shapes.natural, LEVELS: levels}))
        self._epoch = int(table.get(EPOCH, 0))
        kept: Mapping[str, int] = table.get(LEVELS, {})
        self._levels = {
            name: min(max(kept.get(name, one.initial), one.lowest), one.highest)
            for name, one in SUPPORTED.items()
        }
        self._changing = BoundedSemaphore(1)
        self.switched_off: dict[str, Callable[[], object]] = {}
        """By the name of a feature what is called when its level becomes 0; it may wait as a green thread."""

    def level(self, name: str) -> int:
        """The level of a feature; 0: it is off, or unknown."""
        return self._levels.get(name, 0)

    def is_elr_on(self) -> bool:
        """Whether there are eligible leader replicas."""
        return self.level(ELR) > 0

    def check_on(self, name: str) -> None:
        """Raise UnsupportedVersionError for a feature whose level is 0."""
        if not self.level(name):
            raise UnsupportedVersionError(f"The feature {name} is off: its level is 0.")

    def features(self) -> Features:
        return Features(
            self._epoch,
            {name: (one.lowest, one.highest) for name, one in SUPPORTED.items()},
            {name: level for name, level in self._levels.items() if level},
        )

    def update_features(self, updates: Mapping[str, FeatureUpdate], validate_only: bool = False) -> Outcome:
        return run_to_completion(self._hub, self._update, updates, validate_only)

    def _update(self, updates: Mapping[str, FeatureUpdate], validate_only: bool) -> Outcome:
        with self._changing:
            for name, update in updates.items():
                detail = self._refusal(name, *update)
                if detail:
                    return Outcome(InvalidUpdateVersionError, detail)
            levels = {**self._levels, **{name: update.level for name, update in updates.items()}}
            if validate_only or levels == self._levels:
                return Outcome(None)
            epoch = self._epoch + 1
            try:
                self._writer.put_and_wait({(FEATURES, EPOCH): epoch, (FEATURES, LEVELS): levels})
            except LogError as error:
                log.error("the levels of features were not written: %s", error)
                return Outcome(KafkaStorageError, str(error))
            self._epoch, before, self._levels = epoch, self._levels, levels
            for name, switched_off in self.switched_off.items():
                if before[name] and not levels[name]:
                    switched_off()
            return Outcome(None)

    def _refusal(self, name: str, level: int, type_: int) -> str:
        """Why a feature cannot have this level, in Kafka's words; "": it can."""
        current = self.level(name)
        supported = SUPPORTED.get(name)
        reason = ""
        if type_ not in list(UpgradeType):
            reason = "The controller does not support the given upgrade type."
        elif level < 0:
            reason = "A feature version cannot be less than 0."
        elif supported is None and not level:
            reason = f"Feature {name} not found."
        elif supported is None:
            reason = f"Local controller {self._node_id} does not support this feature."
        elif not supported.lowest <= level <= supported.highest:
            versions = f"{supported.lowest}-{supported.highest}"
            reason = f"Local controller {self._node_id} only supports versions {versions}"
        elif level < current and type_ == UpgradeType.UPGRADE:
            reason = _DOWNGRADE
        elif level > current and type_ != UpgradeType.UPGRADE:
            reason = "Can't downgrade to a newer version."
        elif level < current and name == "metadata.version":
            why = _DELETES if type_ == UpgradeType.SAFE_DOWNGRADE else _UNSAFE
            return f"Unsupported metadata.version downgrade from {current} to {level}. {why}"
        elif level < current and name == "kraft.version":
            reason = "Can't downgrade the version of this feature."
        return reason and f"Invalid update version {level} for feature {name}. {reason}"
