"""Bytes <-> objects: commands, the two framings, beacons, record batches. No I/O."""
