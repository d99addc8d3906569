"""The audit log: connections, failed logins, and refused operations, each with its principal. No secret is
ever in it.

Names come from clients: characters that would begin another line, or are not shown, are escaped, so that no
client can forge a line.
"""

from __future__ import annotations

import logging

audit = logging.getLogger("dafka.audit")


def _on_one_line(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    if not text.isprintable():
        record.msg = "".join(
            one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
        )
        record.args = None
    return True


audit.addFilter(_on_one_line)
