"""Recordings of a cluster: the `.sktrace` format, its hashes, and a builder that makes one.

Formats only: nothing here reads a clock, opens a socket or knows the simulator.
"""
