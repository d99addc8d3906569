"""Data stores as programs use them: the objects, what is behind them on the hub, and the disk."""
