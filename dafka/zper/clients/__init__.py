"""Small clients of a ZPER server: plain pyzmq, in the caller's thread."""
