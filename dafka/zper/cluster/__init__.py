"""ZPController: the nodes of a cluster tell each other their topics and their health. It informs and decides
nothing."""
