"""Copies 4 KiB with a DSA by write(2), which needs no special instruction: script.py [NODE].

    dray run --profile 1e1w-d -- python3 script.py

The driver takes write(2) from Linux 6.10 on: `dray run` shows that with `--personality 7.2`, or with
`--require write` on any other.
"""

import ctypes
import os
import struct
import sys

MEMMOVE = 3
COMPLETION_VALID, REQUEST_COMPLETION = 1 << 2, 1 << 3
SIZE = 4096

source = ctypes.create_string_buffer(b"x" * SIZE, SIZE)
destination = ctypes.create_string_buffer(SIZE)
memory = ctypes.create_string_buffer(64)
# A completion record is aligned to 32 bytes.
record = (ctypes.addressof(memory) + 31) // 32 * 32

descriptor = struct.pack(
    "<IIQQQI28x",
    0,
    MEMMOVE << 24 | COMPLETION_VALID | REQUEST_COMPLETION,
    record,
    ctypes.addressof(source),
    ctypes.addressof(destination),
    SIZE,
)
node = os.open(sys.argv[1] if len(sys.argv) > 1 else "/dev/dsa/wq0.0", os.O_RDWR)
os.write(node, descriptor)
while ctypes.string_at(record, 1) == b"\0":
    os.sched_yield()
status = ctypes.string_at(record, 1)[0]
same = source.raw == destination.raw
print(f"status {status}, {'copied' if same else 'not copied'}")
sys.exit(0 if status == 1 and same else 1)
