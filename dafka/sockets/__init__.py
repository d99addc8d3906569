"""ZeroMQ's sockets on the hub: its patterns carried by gevent sockets, without libzmq.

- :class:`~dafka.sockets.router.Router` accepts DEALER, REQ, PUSH, PULL and ROUTER sockets and tells its
  handler of each peer and its messages. Unlike libzmq's ROUTER it knows a peer from its handshake on, stops
  reading one whose messages wait, and bounds memory in octets.
- :class:`~dafka.sockets.publisher.Publisher` accepts SUB and XSUB sockets and sends each what it has
  subscribed to.
- :class:`~dafka.sockets.dealer.Dealer` connects to a ROUTER, and again after each disconnect.
- :class:`~dafka.sockets.subscriber.Subscriber` connects to any number of PUB and XPUB sockets.

Everything here belongs to the hub's thread. :class:`dafka.zmtp.connection.Connection` decides about the
octets of a connection; here are sockets, time, queues and what all peers share. One green thread reads a
connection and calls the handler. Nothing waits for a peer to read: an :class:`~dafka.sockets.outbox.Outbox`
sends when the kernel has room.
"""
