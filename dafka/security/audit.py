"""The audit log: who connected, who failed to, and who was refused what. No secret is ever in it."""

from __future__ import annotations

import logging

audit = logging.getLogger("dafka.audit")
