"""The bridge: topics of Kafka and topics of the overlay, joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import gevent
from kafka.errors import KafkaError

from dafka.hub.completion import run_to_completion
from dafka.log.repeating import bounded_logger
from dafka.overlay.bridge.carrying import IntoKafka, IntoOverlay
from dafka.overlay.bridge.checkpoints import Checkpoints
from dafka.overlay.bridge.limits import CHECKPOINT_SECONDS, HELLO_SECONDS, TOPICS_SECONDS
from dafka.overlay.bridge.rules import InvalidRule, ToKafka, ToOverlay
from dafka.overlay.bridge.sharing.link_messages import PREFIX, SITES, Hello, to_value
from dafka.overlay.bridge.sharing.site_names import check_site
from dafka.overlay.bridge.sharing.sites import Sites
from dafka.overlay.bridge.standing import Standing
from dafka.overlay.limits import TICK_SECONDS
from dafka.overlay.node.endpoint import Endpoint
from dafka.overlay.node.errors import Closed, Overloaded

log = bounded_logger(__name__)

GROUP = "dafka-bridge."


def _list_of(option: str, what: str, kinds: tuple[type, ...], given: Any) -> list[Any]:
    """What ``given`` has. Raises InvalidRule if it is no iterable of these kinds: it would carry nothing."""
    items = list(given) if isinstance(given, Iterable) else [given]
    for item in items:
        if not isinstance(item, kinds):
            raise InvalidRule(f"{option} is a list of {what}, and {item!r:.100} is none")
    return items


class Bridge:
    """Joins an endpoint of the overlay with a broker: one of this process, or any Kafka by TCP.

    ::

        with Endpoint(peers=["sensor:9999"], tls="anonymous") as endpoint:
            with Bridge(endpoint, "localhost:9092", rules=[ToKafka("/zeek/", "zeek.{name}")]):
                ...

    Args:
        endpoint: It stays the caller's, which closes it behind the bridge. bootstrap_servers: The broker, as
        for every Kafka client. rules: Rules for messages into topics of Kafka, and for records into the
        overlay. site: The name of this broker among others whose bridges are in the same overlay. Topic
        ``flights``
            of site ``berlin`` is ``berlin.flights`` at the others.
        share: Patterns, as in a shell, of the topics that other sites may have.
        take: Whether the topics that other sites share come here.
        name: Of the groups ``dafka-bridge.NAME.*`` that hold the checkpoints; by default the site, or
            ``overlay``. Bridges on one broker need different ones.
        timeout: Seconds to wait for the broker; None: for ever. A refused login is not tried again.
        login: ``security_protocol``, ``tls`` and ``sasl``, as for :func:`dafka.broker.connect`.

    After a kill, records and messages behind the last checkpoint, about a second ago, are carried again;
    nothing is left out. Raises :class:`~dafka.overlay.bridge.rules.InvalidRule`, TypeError for what is no
    ``endpoint``, and what :func:`dafka.broker.connect` raises.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        bootstrap_servers: str | Iterable[str],
        *,
        rules: Iterable[ToKafka | ToOverlay] = (),
        site: str | None = None,
        share: Iterable[str] = (),
        take: bool = True,
        name: str | None = None,
        timeout: float | None = None,
        **login: Any,
    ) -> None:
        if not isinstance(endpoint, Endpoint):
            raise TypeError(f"endpoint is a dafka.overlay.Endpoint, not {endpoint!r:.100}")
        if name is not None and not (isinstance(name, str) and name):
            raise InvalidRule(f"name is a text, under which a bridge keeps its place, not {name!r:.100}")
        rules = _list_of("rules", "ToKafka(...) or ToOverlay(...)", (ToKafka, ToOverlay), rules)
        patterns = _list_of("share", "names of topics", (str,), [share] if isinstance(share, str) else share)
        if patterns and site is None:
            raise InvalidRule("topics are shared under the name of a site: give site")
        if site is None and not rules:
            raise InvalidRule("nothing to do: give rules, or a site")
        if site is not None:
            check_site(site)
        self._endpoint = endpoint
        self._connection = Standing(bootstrap_servers, timeout, login)
        self._hub = self._connection.hub
        try:
            self._hub.run(self._open, rules, site, patterns, take, name or site or "overlay")
        except BaseException:
            self._connection.close()
            raise

    def _open(
        self, rules: list[ToKafka | ToOverlay], site: str | None, share: list[str], take: bool, name: str
    ) -> None:
        broker = self._connection.broker
        self._discarded: Counter[str] = Counter()
        self._of_sites = Checkpoints(broker, f"{GROUP}{name}.sites")
        self._of_topics = Checkpoints(broker, f"{GROUP}{name}.overlay")
        self._sites: Sites | None = None
        self._into_kafka: IntoKafka | None = None
        self._into_overlay: IntoOverlay | None = None
        self._threads: list[gevent.Greenlet] = []
        self._writer: gevent.Greenlet | None = None
        into_kafka = [rule for rule in rules if isinstance(rule, ToKafka)]
        into_overlay = [rule for rule in rules if isinstance(rule, ToOverlay)]
        if site is not None:
            self._of_sites.load()
            self._sites = Sites(
                self._hub, broker, self._endpoint, site, share, take, self._of_sites, self._discarded
            )
            self._subscriber = self._endpoint.subscribe(PREFIX)
            self._sites.look()
            self._keep(self._hear)
            self._keep(self._every, TICK_SECONDS, self._sites.tick)
            self._keep(self._every, TOPICS_SECONDS, self._sites.look)
            self._keep(self._every, HELLO_SECONDS, self._greet)
        if into_kafka:
            self._into_kafka = IntoKafka(broker, self._endpoint, into_kafka, self._discarded)
            self._writer = self._hub.keep(self._into_kafka.run)
        if into_overlay:
            self._of_topics.load()
            self._into_overlay = IntoOverlay(
                broker, self._endpoint, into_overlay, self._of_topics, self._discarded
            )
            self._keep(self._into_overlay.run)
        self._keep(self._every, CHECKPOINT_SECONDS, self._note)

    @property
    def sites(self) -> list[str]:
        """The other sites that were heard of."""
        return self._hub.run(lambda: [] if self._sites is None else self._sites.names)

    @property
    def discarded(self) -> dict[str, int]:
        """Messages and records that no rule could carry, by cause; each was logged."""
        return dict(self._discarded)

    def metrics(self) -> dict[str, Any]:
        """Figures since the start, by the names of :mod:`dafka.mesh.metrics`."""
        figures: dict[str, Any] = {} if self._sites is None else self._hub.run(self._sites.metrics)
        if self._into_kafka is not None:
            figures["bridge_records_in"] = self._into_kafka.records
        if self._into_overlay is not None:
            figures["bridge_messages_out"] = self._into_overlay.messages
        return {**figures, "discarded": self.discarded}

    def close(self) -> None:
        """Write what has come, and note how far everything is."""
        self._hub.run(run_to_completion, self._hub, self._close)

    def _close(self) -> None:
        if self._into_kafka is not None and self._writer is not None:
            self._into_kafka.close()
            self._writer.join(_CLOSE_SECONDS)
            self._writer.kill()
        for thread in self._threads:
            thread.kill()
        if self._sites is not None:
            self._sites.close()
            self._subscriber.close()
        if self._into_overlay is not None:
            self._into_overlay.note(everything=True)
        self._note()
        self._connection.close()

    def __enter__(self) -> Bridge:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # -- green threads ------------------------------------------------------------------------------

    def _keep(self, fn: Callable[..., Any], *args: Any) -> None:
        self._threads.append(self._hub.keep(fn, *args))

    def _every(self, seconds: float, fn: Callable[[], object]) -> None:
        while True:
            fn()
            gevent.sleep(seconds)

    def _hear(self) -> None:
        assert self._sites is not None
        for message in self._subscriber:
            self._sites.hear(message)

    def _greet(self) -> None:
        assert self._sites is not None
        try:
            self._endpoint.publish(SITES, to_value(Hello(self._sites.site)), timeout=HELLO_SECONDS)
        except Overloaded:
            log.info("a greeting was not sent: somebody is too slow")
        except Closed:
            log.warning("the endpoint of the bridge was closed before it")
            gevent.sleep(10 * HELLO_SECONDS)

    def _note(self) -> None:
        if self._into_overlay is not None:
            self._into_overlay.note()
        try:
            self._of_sites.note()
            self._of_topics.note()
        except KafkaError as error:
            log.error("checkpoint: %s", error)


_CLOSE_SECONDS = 10.0
