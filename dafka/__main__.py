"""``python -m dafka``, which is the command ``dafka``."""

from dafka.cli import main

main(prog_name="dafka")
