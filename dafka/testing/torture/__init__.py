"""Tests that torture: a Kafka that misbehaves on purpose, reproducibly, and finds the bug in a program.

``dafka.testing.chaos`` is the broker; see the section about it in the folder above. Where what is:

================  =====================================================================================
kinds             every kind of fault, and why a correct program survives it
plan              faults as values, and lists of them
generator         which call meets which fault, from a seed
applying          the broker interface with faults, for clients in this process and over TCP
coordinated       the part of it for groups, transactions, producer ids and share groups
connections       what faults do to connections over TCP
others            what other members do to a group
history           what was done
assertions        what is to hold after all that
shrinking         which of the faults are enough for a failure
================  =====================================================================================
"""
