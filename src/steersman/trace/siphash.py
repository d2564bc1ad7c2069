"""SipHash, the keyed hash of Aumasson and Bernstein (2012), on whole byte strings.

SimKube names pod specs by Rust's `DefaultHasher`, which is SipHash-1-3 under the zero key; no
function of the standard library gives that (CPython's own `hash(bytes)` is the same function, but
under a key fixed when the process starts).
"""

from __future__ import annotations

import struct

_MASK = 0xFFFFFFFFFFFFFFFF


def siphash13(data: bytes | bytearray, key: bytes = bytes(16)) -> int:
    """SipHash-1-3 of `data` as an unsigned 64-bit integer; `key` is 16 bytes."""
    return siphash(data, key, 1, 3)


def siphash(data: bytes | bytearray, key: bytes, rounds: int, final_rounds: int) -> int:
    """SipHash-`rounds`-`final_rounds` of `data` (the paper's default is 2-4), unsigned 64 bits."""
    if len(key) != 16:
        raise ValueError(f"a SipHash key has 16 bytes, this one has {len(key)}")
    k0, k1 = struct.unpack("<2Q", key)
    state = (
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    )
    # The last word holds the bytes left over and, on top, the length modulo 256.
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    words = struct.unpack(f"<{len(padded) // 8}Q", padded)
    v0, v1, v2, v3 = _absorb(state, words, rounds)
    v0, v1, v2, v3 = _absorb((v0, v1, v2 ^ 0xFF, v3), (0,), final_rounds)
    return v0 ^ v1 ^ v2 ^ v3


def _absorb(state: tuple[int, int, int, int], words: tuple[int, ...], rounds: int) -> tuple[int, int, int, int]:
    # Written out in one loop: this runs once for every eight bytes of every recorded spec, and a
    # call for each rotation made it four times slower.
    v0, v1, v2, v3 = state
    mask = _MASK
    for word in words:
        v3 ^= word
        for _ in range(rounds):
            v0 = (v0 + v1) & mask
            v1 = ((v1 << 13 | v1 >> 51) & mask) ^ v0
            v0 = (v0 << 32 | v0 >> 32) & mask
            v2 = (v2 + v3) & mask
            v3 = ((v3 << 16 | v3 >> 48) & mask) ^ v2
            v0 = (v0 + v3) & mask
            v3 = ((v3 << 21 | v3 >> 43) & mask) ^ v0
            v2 = (v2 + v1) & mask
            v1 = ((v1 << 17 | v1 >> 47) & mask) ^ v2
            v2 = (v2 << 32 | v2 >> 32) & mask
        v0 ^= word
    return v0, v1, v2, v3
