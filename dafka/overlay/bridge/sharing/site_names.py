"""The names of topics of other sites, and which topics go to which site.

As MirrorMaker does it: topic ``flights`` of site ``berlin`` is ``berlin.flights`` everywhere else. A topic
that is known to come from another site is not passed on, for the overlay reaches everybody; and no site takes
a topic whose name says that it has been here. So nothing goes round, also not where two overlays are joined
by several bridges.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from dafka.overlay.bridge.limits import TOPIC_CHARACTERS
from dafka.overlay.bridge.rules import InvalidRule

_SITE = re.compile(r"[A-Za-z0-9_-]{1,100}")


def check_site(site: str) -> str:
    """A name that can stand before the dot. Raises :class:`InvalidRule`."""
    if not isinstance(site, str) or not _SITE.fullmatch(site):
        raise InvalidRule(f"site {site!r}: letters, digits, - and _, at most 100; a dot would end the name")
    return site


def name_here(site: str, topic: str) -> str:
    """The name of topic ``topic`` of ``site`` at all other sites."""
    return f"{site}.{topic}"


def shared(topics: Iterable[str], patterns: Collection[str], sites: Collection[str]) -> list[str]:
    """The topics that other sites may have: those that match a pattern and are of this site.

    ``sites`` are the names of all other sites that are known. Topics with two underscores in front are a
    broker's own.
    """
    known = set(sites)
    return [
        topic
        for topic in topics
        if not topic.startswith("__")
        and topic.partition(".")[0] not in known
        and any(fnmatchcase(topic, pattern) for pattern in patterns)
    ]


def may_take(me: str, site: str, topic: str) -> bool:
    """Whether site ``me`` takes ``topic`` from ``site``."""
    return site != me and me not in topic.split(".")[:-1] and len(name_here(site, topic)) <= TOPIC_CHARACTERS
