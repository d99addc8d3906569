"""Bytes <-> objects: commands, the two framings, beacons, record batches, RAW form. No I/O."""
