"""What is around the broker, as far as the console is connected with it: the mesh, the overlay, ZPER."""
