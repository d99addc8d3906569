"""Rights: Kafka's access control lists, as its StandardAuthorizer reads them. No I/O, no clock."""

from __future__ import annotations
