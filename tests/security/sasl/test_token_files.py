"""Tokens in files."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka.errors import KafkaConfigurationError

from dafka.security.sasl.token_files import MOST_OCTETS, TokenFile


def test_the_token_is_what_is_in_the_file_now(tmp_path: Path) -> None:
    path = tmp_path / "token"
    tokens = TokenFile(str(path))
    for token in ("one.of.them", "another.one.later"):
        path.write_text(f"{token}\n")
        assert tokens.token() == token
    assert tokens.extensions() == {}


@pytest.mark.parametrize(
    "octets", [b"", b" \n", b"secret secret", b"\xff\xfesecret", b"x" * (MOST_OCTETS + 1), None]
)
def test_anything_but_a_token_is_named_by_its_file_alone(tmp_path: Path, octets: bytes | None) -> None:
    path = tmp_path / "token"
    if octets is not None:
        path.write_bytes(octets)
    with pytest.raises(KafkaConfigurationError, match=f"the token in '{path}'") as error:
        TokenFile(str(path)).token()
    assert "secret" not in str(error.value)
