"""Networks around the broker that the console is connected with: the mesh, the overlay, ZPER."""
