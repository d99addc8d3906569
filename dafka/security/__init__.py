"""Authentication and encryption: TLS and SASL for broker and clients, keys for the mesh."""

from __future__ import annotations

from dafka.security.acls.options import ServerAcls as ServerAcls
from dafka.security.errors import AclError as AclError
from dafka.security.errors import KeyFolderError as KeyFolderError
from dafka.security.errors import SaslError as SaslError
from dafka.security.errors import TlsError as TlsError
from dafka.security.keys import KeyFolder as KeyFolder
from dafka.security.sasl.options import ClientSasl as ClientSasl
from dafka.security.sasl.options import OAuthTokens as OAuthTokens
from dafka.security.sasl.options import ServerSasl as ServerSasl
from dafka.security.tls import ClientTls as ClientTls
from dafka.security.tls import PeerTls as PeerTls
from dafka.security.tls import ServerTls as ServerTls
