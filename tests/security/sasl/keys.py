"""Keys that sign tokens, for tests."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa


class Signer:
    """Somebody who issues tokens; ``jwks`` is a file with the public key."""

    def __init__(self, folder: Path, name: str = "one") -> None:
        self._name = name
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.jwks = str(folder / "jwks.json")
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        Path(self.jwks).write_text(json.dumps({"keys": [{**public, "kid": name, "use": "sig"}]}))

    def token(self, seconds: float = 300, **claims: Any) -> str:
        """A token for alice, unless ``claims`` say otherwise (None: without it)."""
        now = int(time.time())
        every = {"sub": "alice", "iat": now, "exp": int(now + seconds), **claims}
        content = {name: value for name, value in every.items() if value is not None}
        return jwt.encode(content, self._key, algorithm="RS256", headers={"kid": self._name})
