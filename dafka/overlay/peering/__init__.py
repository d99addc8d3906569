"""How two nodes become peers, stay so and part: handshake, pings, goodbye, one connection for each pair."""
