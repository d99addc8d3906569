"""The options of a broker: as users give them, checked, and by the names that Kafka has for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from dafka.broker.interface.front_end import FrontEndOptions
from dafka.broker.limits import OFFSETS_RETENTION, PARTITIONS_PER_TOPIC
from dafka.broker.listening import Listen, parse_listeners
from dafka.commit.retention import CHECK_INTERVAL, Retention, check_choice, check_interval, check_retention
from dafka.hub.clock import REAL, Clock
from dafka.log import Durability, OnDamage
from dafka.mesh.address import TowerLike, tower_addresses
from dafka.security.acls.options import ServerAcls
from dafka.security.keys import KeyFolder
from dafka.security.sasl.options import ServerSasl
from dafka.security.tls import ServerTls


@dataclass(frozen=True, kw_only=True)
class BrokerOptions:
    """The options of a :class:`dafka.Broker`, which describes each of them. Times are in seconds.

    Raises ValueError for a value that cannot be; it names the option and the value.
    """

    tower: TowerLike = None
    default_partitions: int = 1
    auto_create_topics: bool = True
    durability: Durability = "process"
    retention_ms: int | None = None
    retention_bytes: int | None = None
    retention_check_interval: float = CHECK_INTERVAL
    offsets_retention: float | None = OFFSETS_RETENTION
    on_damage: OnDamage = "raise"
    listen: str | None = None
    advertised: str | None = None
    tls: ServerTls | None = None
    sasl: ServerSasl | None = None
    acls: ServerAcls | None = None
    zper: FrontEndOptions | None = None
    console: FrontEndOptions | None = None
    keys: KeyFolder | None = None
    clock: Clock = REAL
    group_settings: Mapping[str, str] | None = None
    quota_settings: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        count = self.default_partitions
        if type(count) is not int or not 0 < count <= PARTITIONS_PER_TOPIC:
            raise ValueError(
                f"default_partitions is a number from 1 to {PARTITIONS_PER_TOPIC}, not {count!r}"
            )
        if not isinstance(self.auto_create_topics, bool):
            raise ValueError(f"auto_create_topics is True or False, not {self.auto_create_topics!r:.100}")
        check_choice("durability", self.durability, get_args(Durability))
        check_choice("on_damage", self.on_damage, get_args(OnDamage))
        check_retention(self.retention_ms, self.retention_bytes)
        check_interval(self.retention_check_interval)
        check_offsets_retention(self.offsets_retention)
        if self.tower is not None:
            tower_addresses(self.tower)
        for name in ("listen", "advertised"):
            addresses = getattr(self, name)
            if addresses is not None and not isinstance(addresses, str):
                raise ValueError(f"{name} is a text such as HOST:PORT or None, not {addresses!r:.100}")
        if self.advertised is not None and self.listen is None:
            raise ValueError(f"advertised={self.advertised!r} says how to reach a listener: give listen, too")
        if self.tls is not None and not isinstance(self.tls, ServerTls):
            raise ValueError(f"tls is dafka.security.ServerTls(...) or None, not {self.tls!r}")
        secure = [one.protocol for one in self.listeners if one.is_secure]
        if secure and self.tls is None:
            raise ValueError(f"listen={self.listen!r}: {secure[0]} needs tls=ServerTls(certfile=...)")
        if self.tls is not None and not secure:
            raise ValueError("tls is given, and no listener has it: listen='SSL://HOST:PORT'")
        if self.keys is not None and not isinstance(self.keys, KeyFolder):
            raise ValueError(f"keys is dafka.security.KeyFolder(...) or None, not {self.keys!r:.100}")
        if self.sasl is not None and not isinstance(self.sasl, ServerSasl):
            raise ValueError(f"sasl is dafka.security.ServerSasl(...) or None, not {self.sasl!r}")
        if self.sasl is not None and not any(one.has_sasl for one in self.listeners):
            raise ValueError("sasl is given, and no listener has it: listen='SASL_SSL://HOST:PORT'")
        if self.acls is not None and not isinstance(self.acls, ServerAcls):
            raise ValueError(f"acls is dafka.security.ServerAcls(...) or None, not {self.acls!r:.100}")
        if self.zper is not None and not isinstance(self.zper, FrontEndOptions):
            raise ValueError(f"zper is dafka.zper.ZperOptions(...) or None, not {self.zper!r}")
        if self.console is not None and not isinstance(self.console, FrontEndOptions):
            raise ValueError(f"console is dafka.console.ConsoleOptions(...) or None, not {self.console!r}")
        for name in ("group_settings", "quota_settings"):
            settings = getattr(self, name)
            if settings is not None and not isinstance(settings, Mapping):
                raise ValueError(f"{name} is a dict of settings or None, not {settings!r:.100}")

    @cached_property
    def retention(self) -> Retention:
        """``retention_ms`` and ``retention_bytes``."""
        return check_retention(self.retention_ms, self.retention_bytes)

    @property
    def offsets_retention_seconds(self) -> float:
        """``offsets_retention``, which is infinite where offsets are kept for ever."""
        seconds = self.offsets_retention
        return math.inf if seconds is None or seconds == -1 else seconds

    @cached_property
    def listeners(self) -> tuple[Listen, ...]:
        """``listen`` and ``advertised``; empty without a listener."""
        return () if self.listen is None else parse_listeners(self.listen, self.advertised)

    def kafka_configs(self) -> dict[str, str]:
        """The options that Kafka has as well, by its names for them."""
        seconds = self.offsets_retention_seconds
        minutes = 2**31 - 1 if seconds == math.inf else max(1, math.ceil(seconds / 60))
        configs = {
            **(self.group_settings or {}),
            **(self.quota_settings or {}),
            "auto.create.topics.enable": str(self.auto_create_topics).lower(),
            "log.retention.check.interval.ms": str(max(1, int(1000 * self.retention_check_interval))),
            "num.partitions": str(self.default_partitions),
            "offsets.retention.minutes": str(minutes),
        }
        if self.acls is not None:
            configs["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        if self.retention.ms >= 0:
            configs["log.retention.ms"] = str(self.retention.ms)
        if self.retention.bytes >= 0:
            configs["log.retention.bytes"] = str(self.retention.bytes)
        return configs


def check_offsets_retention(seconds: object) -> None:
    """Raise ValueError for what is no ``offsets_retention``."""
    if seconds is None or seconds == -1:
        return
    if type(seconds) not in (int, float) or not 0 < seconds <= 1e9:  # type: ignore[operator]
        raise ValueError(
            f"offsets_retention is a number of seconds above 0, or None or -1 for ever, not {seconds!r}"
        )
