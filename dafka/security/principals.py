"""Kafka's names of principals (``User:alice``), from a certificate by rules (KIP-371).

A rule is ``DEFAULT`` (the whole name), or ``RULE:pattern/replacement/``, with ``L`` or ``U`` behind it for
lower or upper case: the first one whose pattern matches the whole name makes the name. Rules have commas
between them; a ``/`` or ``\\`` in a rule has a ``\\`` before it. Patterns are Python's, and ``$1`` is the
text of a group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dafka.security.errors import TlsError
from dafka.security.subject_octets import attributes

USER = "User"
ANONYMOUS = f"{USER}:ANONYMOUS"

_RULE = re.compile(
    r"\s*(?:(?P<default>DEFAULT)"
    r"|RULE:(?P<pattern>(?:\\.|[^\\/])*)/(?P<text>(?:\\.|[^\\/])*)/(?P<case>[LU]?))\s*(?:,|$)"
)
_SHORT = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}


class Rule(NamedTuple):
    """A rule; ``pattern`` None is DEFAULT."""

    pattern: re.Pattern[str] | None
    text: str = ""
    case: str = ""


def parse_rules(text: str) -> tuple[Rule, ...]:
    """``ssl.principal.mapping.rules``. Raises :class:`TlsError`."""
    rules, position = [], 0
    while position < len(text):
        found = _RULE.match(text, position)
        if found is None:
            raise TlsError(f"principal_rules={text!r}: {text[position:]!r} is not a rule")
        position = found.end()
        if found["default"]:
            rules.append(Rule(None))
            continue
        try:
            pattern = re.compile(_without_slashes(found["pattern"]))
        except (re.error, RecursionError) as error:  # of parentheses within each other
            raise TlsError(
                f"principal_rules={text!r}: {found['pattern']!r} is not a pattern: {error}"
            ) from error
        rules.append(Rule(pattern, _replacement(found["text"], pattern.groups), found["case"]))
    return tuple(rules) or (Rule(None),)


def _replacement(text: str, groups: int) -> str:
    """In Python's form. As Kafka has it, a group that there is not is text, if there is any."""

    def written(found: re.Match[str]) -> str:
        is_text = 0 < groups < int(found[1])
        return found[0] if is_text else f"\\g<{found[1]}>"

    return re.sub(r"\$(\d)", written, _without_slashes(text))


def _without_slashes(text: str) -> str:
    return text.replace("\\/", "/")


def mapped(rules: Sequence[Rule], name: str) -> str | None:
    """A certificate's name, changed by the first rule that matches; None: none does."""
    for pattern, text, case in rules:
        if pattern is None:
            return name
        found = pattern.fullmatch(name)
        if found is not None:
            try:
                made = found.expand(text)
            except (re.error, IndexError):
                return None
            return made.lower() if case == "L" else made.upper() if case == "U" else made
    return None


def subject(certificate: Mapping[str, Any], octets: bytes = b"") -> str:
    """The subject of a certificate, from ``SSLSocket.getpeercert()``, in the form of RFC 2253.

    ``octets`` are the certificate itself: attributes without a short name are written as Java writes them,
    ``1.2.840.113549.1.9.1=#1603...``.
    """
    described = certificate.get("subject", ())
    is_short = all(kind in _SHORT for several in described for kind, _ in several)
    encoded = [] if is_short else attributes(octets)
    parts = []
    for number, several in enumerate(described):
        texts = []
        for place, (kind, value) in enumerate(several):
            if kind in _SHORT:
                texts.append(f"{_SHORT[kind]}={_escaped(value)}")
            else:
                one = encoded[number][place]
                texts.append(f"{one.kind}=#{one.value.hex()}")
        parts.append("+".join(texts))
    return ",".join(reversed(parts))


def _escaped(value: str) -> str:
    text = re.sub(r'([,=+"\\<>;])', r"\\\1", value)  # Java escapes "=", too
    if text[:1] in ("#", " "):
        text = "\\" + text
    return text[:-1] + "\\ " if text.endswith(" ") and not text.endswith("\\ ") else text
