"""Other systems' Python interfaces over Dafka: :mod:`compat.kafka` has kafka-python's classes.

A package of its own, with this file, and not a namespace package: a folder without ``__init__.py`` loses to
any other ``compat`` found later on ``sys.path``, and the program that swapped its import would get that one.
"""
