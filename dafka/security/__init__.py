"""Who may come in, and what nobody else reads: TLS for the broker and for its clients."""

from __future__ import annotations

from dafka.security.errors import TlsError as TlsError
from dafka.security.tls import ClientTls as ClientTls
from dafka.security.tls import ServerTls as ServerTls
