"""The messages about voters and brokers of a cluster (KIP-853, KIP-500)."""

from __future__ import annotations

from typing import Any

from dafka.broker.codec.messages.message_class import message_class

UnregisterBrokerRequest: Any = message_class("UnregisterBrokerRequest", __name__)
UnregisterBrokerResponse: Any = message_class("UnregisterBrokerResponse", __name__)
AddRaftVoterRequest: Any = message_class("AddRaftVoterRequest", __name__)
AddRaftVoterResponse: Any = message_class("AddRaftVoterResponse", __name__)
RemoveRaftVoterRequest: Any = message_class("RemoveRaftVoterRequest", __name__)
RemoveRaftVoterResponse: Any = message_class("RemoveRaftVoterResponse", __name__)
