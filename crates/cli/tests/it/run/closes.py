"""Closes a work queue while the device works for it, and prints how many clients there are then.

closes.py NODE CLIENTS: the driver drains the queue before close(2) returns, and then counts the client no more.
"""

import ctypes
import mmap
import os
import struct
import sys

FILL, COUNT, BYTES = 4, 64, 2 << 20
VALID = 0x0C
SHARED = mmap.MAP_SHARED | mmap.MAP_POPULATE

node = os.open(sys.argv[1], os.O_RDWR)
memory = mmap.mmap(-1, 4096 + COUNT * BYTES, flags=SHARED)
base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
for n in range(COUNT):
    record = base + 64 * n
    descriptor = struct.pack("<IIQQQI", 0, VALID | FILL << 24, record, n, base + 4096 + n * BYTES, BYTES)
    os.write(node, descriptor + bytes(64 - len(descriptor)))
os.close(node)
with open(sys.argv[2]) as clients:
    print(clients.read().strip())
