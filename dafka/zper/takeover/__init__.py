"""Taking over the folder of a Java ZPER server."""
