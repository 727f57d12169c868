"""Submits by write(2) or through a portal, and waits for what comes of it.

waits.py NODE movdir64b|enqcmd|write COUNT: prints how COUNT descriptors ended, and then what else the device
can be asked.
"""

import ctypes
import errno
import mmap
import os
import struct
import sys
import time

NODE, WAY, COUNT = sys.argv[1], sys.argv[2], int(sys.argv[3])
# What RSI points at is written to where RDI points: ModRM 3E.
CODE = {
    "movdir64b": b"\x66\x0f\x38\xf8\x3e\x31\xc0\xc3",  # ...; xor eax, eax; ret
    "enqcmd": b"\xf2\x0f\x38\xf8\x3e\x0f\x94\xc0\x0f\xb6\xc0\xc3",  # ...; setz al; movzx eax, al; ret
}
RWX = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
VALID = 0x0C


def address(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def attempt(name, action):
    try:
        action()
        print(name, "done", flush=True)
    except OSError as error:
        print(name, errno.errorcode[error.errno], flush=True)


node = os.open(NODE, os.O_RDWR)
memory = mmap.mmap(-1, 64 * 1024)
base = address(memory)
if WAY != "write":
    code = mmap.mmap(-1, 4096, prot=RWX)
    code.write(CODE[WAY])
    instruction = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64)(address(code))
    mapped = mmap.mmap(node, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE)
    portal = address(mapped)

for n in range(COUNT):
    at, record = 128 * n, base + 128 * n + 64
    memory[at : at + 64] = struct.pack("<IIQ", 0, VALID, record) + bytes(48)
    if WAY == "write":
        os.write(node, memory[at : at + 64])
    else:
        while instruction(portal, base + at):
            time.sleep(0)
for n in range(COUNT):
    while memory[128 * n + 64] == 0:
        time.sleep(0)
print("last", hex(memory[128 * (COUNT - 1) + 64]), flush=True)
while True:
    # The other threads of the device's process learn of it a moment later.
    try:
        with open("/sys/bus/dsa/devices/dsa0/state") as file:
            file.read()
        time.sleep(0.001)
    except OSError as error:
        print("state", errno.errorcode[error.errno], flush=True)
        break
attempt("open", lambda: os.open(NODE, os.O_RDWR))
if WAY == "write":
    attempt("write", lambda: os.write(node, memory[:64]))
else:
    attempt("map", lambda: mmap.mmap(node, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE))
