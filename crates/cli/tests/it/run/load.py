"""Writes descriptors of one kind by write(2), one after the other, each waited for.

load.py NODE OPERATION SIZE COUNT: operation copy, fault (from a page that is not there), bad (no such
operation) or blind (a NOOP without a record).
"""

import ctypes
import os
import struct
import sys

NOOP, MEMMOVE, NONSENSE = 0, 3, 0x7F
PAGE = 4096

node = os.open(sys.argv[1], os.O_RDWR)
kind, size, count = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
source = ctypes.create_string_buffer(b"\1" * size, max(size, 1))
target = ctypes.create_string_buffer(b"\2" * size, max(size, 1))
memory = ctypes.create_string_buffer(64)
record = (ctypes.addressof(memory) + 31) // 32 * 32


def descriptor(operation, first=0, second=0, length=0, flags=0x0C):
    completion = record if flags else 0
    head = flags | operation << 24
    return struct.pack("<IIQQQIHH24x", 0, head, completion, first, second, length, 0, 0)


written = {
    "blind": descriptor(NOOP, flags=0),
    "bad": descriptor(NONSENSE),
    "copy": descriptor(MEMMOVE, ctypes.addressof(source), ctypes.addressof(target), size),
    "fault": descriptor(MEMMOVE, PAGE, ctypes.addressof(target), size),
}[kind]
for _ in range(count):
    ctypes.memset(record, 0, 32)
    assert os.write(node, written) == 64
    while kind != "blind" and ctypes.string_at(record, 1) == b"\0":
        os.sched_yield()
