"""How much of a trace is read before it is refused, each limit with its reason.

All are far above any recording seen (the largest public one has 67 KB, 19 events, 27 objects), and
together they bound memory: a hostile file of a few bytes can claim a billion elements.
"""

# About 2,000 times the largest public recording. Held in memory whole, together with its objects.
MAX_FILE_BYTES = 128 << 20

# JSON values in all objects together. An empty map takes one byte in the file and 64 in memory, so
# the size of the file alone would allow 8 GB; a real value takes about 10 bytes in the file.
MAX_VALUES = 16_000_000

# An API server refuses a request body above 3 MiB, so no object of a cluster is larger.
MAX_OBJECT_BYTES = 3 << 20

# etcd refuses a value above 1.5 MiB, and a string is part of one.
MAX_STRING_BYTES = 3 << 19

# The Rust JSON reader that SimKube shares stops at 128 levels; recursion here stays within it.
MAX_DEPTH = 128

# One event a second for eleven days.
MAX_EVENTS = 1_000_000

# Of each: applied and deleted objects, hashes (of the index and of pods), pod lives.
MAX_OBJECTS = 2_000_000

# group (253) / version (63) . Kind (63), as Kubernetes validates them, and the two marks between.
MAX_KIND_LENGTH = 381

# A namespace has at most 63 characters, a name 253.
MAX_NAME_LENGTH = 253

# Later moments cannot be written in RFC 3339 (years have four digits).
MAX_TS = 253_402_300_799
