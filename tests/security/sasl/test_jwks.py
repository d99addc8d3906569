"""Where the keys of tokens come from."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from security.sasl.keys import Signer

from dafka.security import SaslError
from dafka.security.sasl import jwks
from dafka.security.sasl.jwks import KeySet


class Answer(io.BytesIO):
    def geturl(self) -> str:
        return "https://keys.example"


def test_a_file_that_changes_is_read_again(tmp_path):
    signer = Signer(tmp_path)
    keys = KeySet(signer.jwks)
    assert keys.key("one") is not None and keys.key(None) is not None and keys.key("two") is None
    Signer(tmp_path, "two")
    assert keys.key("two") is not None and keys.key("one") is None
    Path(signer.jwks).write_text("{")
    assert keys.key("two") is not None  # an unreadable file changes nothing


def test_an_address_is_asked_again_for_an_unknown_key_but_not_each_time(tmp_path, monkeypatch):
    content = Path(Signer(tmp_path).jwks).read_bytes()
    asked = []
    monkeypatch.setattr(jwks.urllib.request, "urlopen", lambda *_, **__: asked.append(1) or Answer(content))
    keys = KeySet("https://keys.example")
    for _ in range(100):
        assert keys.key("one") is not None and keys.key("two") is None
    assert len(asked) == 1
    monkeypatch.setattr(jwks, "UNKNOWN_SECONDS", -1)
    assert keys.key("two") is None
    assert len(asked) == 2


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"keys": []}',
        '{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "a"}]}',
        "x" * (2 << 20),
        "[" * 100_000,
    ],
    ids=["empty", "list", "object", "no keys", "a shared secret", "too long", "too deep"],
)
def test_anything_but_a_set_of_public_keys_is_refused(tmp_path, content):
    (tmp_path / "keys").write_text(content)
    with pytest.raises(SaslError, match="cannot be read"):
        KeySet(tmp_path / "keys")


def test_a_redirection_to_clear_text_is_refused(tmp_path, monkeypatch):
    class Elsewhere(Answer):
        def geturl(self) -> str:
            return "http://keys.example"

    content = json.dumps(json.loads(Path(Signer(tmp_path).jwks).read_text())).encode()
    monkeypatch.setattr(jwks.urllib.request, "urlopen", lambda *_, **__: Elsewhere(content))
    with pytest.raises(SaslError, match="not https"):
        KeySet("https://keys.example").key("one")
