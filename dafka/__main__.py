"""``python -m dafka``, which is the command ``dafka``."""

from dafka.cli import main

if __name__ == "__main__":
    main(prog_name="dafka")
