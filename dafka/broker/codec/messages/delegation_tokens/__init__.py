"""The messages about delegation tokens (KIP-48)."""

from __future__ import annotations

from typing import Any

from dafka.broker.codec.messages.message_class import message_class

CreateDelegationTokenRequest: Any = message_class("CreateDelegationTokenRequest", __name__)
CreateDelegationTokenResponse: Any = message_class("CreateDelegationTokenResponse", __name__)
RenewDelegationTokenRequest: Any = message_class("RenewDelegationTokenRequest", __name__)
RenewDelegationTokenResponse: Any = message_class("RenewDelegationTokenResponse", __name__)
ExpireDelegationTokenRequest: Any = message_class("ExpireDelegationTokenRequest", __name__)
ExpireDelegationTokenResponse: Any = message_class("ExpireDelegationTokenResponse", __name__)
DescribeDelegationTokenRequest: Any = message_class("DescribeDelegationTokenRequest", __name__)
DescribeDelegationTokenResponse: Any = message_class("DescribeDelegationTokenResponse", __name__)
