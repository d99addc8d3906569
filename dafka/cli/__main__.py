"""``python -m dafka.cli``."""

from dafka.cli import main

main(prog_name="dafka")
