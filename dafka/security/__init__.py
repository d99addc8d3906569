"""Who may come in, and what nobody else reads: TLS for the broker and its clients, keys for the mesh."""

from __future__ import annotations

from dafka.security.errors import KeyFolderError as KeyFolderError
from dafka.security.errors import TlsError as TlsError
from dafka.security.keys import KeyFolder as KeyFolder
from dafka.security.tls import ClientTls as ClientTls
from dafka.security.tls import ServerTls as ServerTls
