"""The messages of share groups (KIP-932)."""

from __future__ import annotations

from typing import Any

from dafka.broker.codec.messages.message_class import message_class

ShareGroupHeartbeatRequest: Any = message_class("ShareGroupHeartbeatRequest", __name__)
ShareGroupHeartbeatResponse: Any = message_class("ShareGroupHeartbeatResponse", __name__)
ShareGroupDescribeRequest: Any = message_class("ShareGroupDescribeRequest", __name__)
ShareGroupDescribeResponse: Any = message_class("ShareGroupDescribeResponse", __name__)
ShareFetchRequest: Any = message_class("ShareFetchRequest", __name__)
ShareFetchResponse: Any = message_class("ShareFetchResponse", __name__)
ShareAcknowledgeRequest: Any = message_class("ShareAcknowledgeRequest", __name__)
ShareAcknowledgeResponse: Any = message_class("ShareAcknowledgeResponse", __name__)
DescribeShareGroupOffsetsRequest: Any = message_class("DescribeShareGroupOffsetsRequest", __name__)
DescribeShareGroupOffsetsResponse: Any = message_class("DescribeShareGroupOffsetsResponse", __name__)
AlterShareGroupOffsetsRequest: Any = message_class("AlterShareGroupOffsetsRequest", __name__)
AlterShareGroupOffsetsResponse: Any = message_class("AlterShareGroupOffsetsResponse", __name__)
DeleteShareGroupOffsetsRequest: Any = message_class("DeleteShareGroupOffsetsRequest", __name__)
DeleteShareGroupOffsetsResponse: Any = message_class("DeleteShareGroupOffsetsResponse", __name__)
InitializeShareGroupStateRequest: Any = message_class("InitializeShareGroupStateRequest", __name__)
InitializeShareGroupStateResponse: Any = message_class("InitializeShareGroupStateResponse", __name__)
ReadShareGroupStateRequest: Any = message_class("ReadShareGroupStateRequest", __name__)
ReadShareGroupStateResponse: Any = message_class("ReadShareGroupStateResponse", __name__)
WriteShareGroupStateRequest: Any = message_class("WriteShareGroupStateRequest", __name__)
WriteShareGroupStateResponse: Any = message_class("WriteShareGroupStateResponse", __name__)
DeleteShareGroupStateRequest: Any = message_class("DeleteShareGroupStateRequest", __name__)
DeleteShareGroupStateResponse: Any = message_class("DeleteShareGroupStateResponse", __name__)
ReadShareGroupStateSummaryRequest: Any = message_class("ReadShareGroupStateSummaryRequest", __name__)
ReadShareGroupStateSummaryResponse: Any = message_class("ReadShareGroupStateSummaryResponse", __name__)
