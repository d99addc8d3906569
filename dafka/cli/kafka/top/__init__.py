"""``dafka kafka top``: rates, lags and delays of a cluster on a live screen.

:mod:`.command` is the command, :mod:`.looker` looks beside the screen, :mod:`.screen` is the screen, which
needs Textual (the extra ``top``).
"""
