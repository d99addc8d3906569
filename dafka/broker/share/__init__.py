"""Share groups (KIP-932): members that read the records of a partition as a queue."""
