"""A program that is wrong about its work queue.

wrong.py NODE movdir64b|enqcmd COUNT: so many NOOPs by this instruction, whatever the queue takes.
wrong.py NODE raw: maps the portal by the call's number, past the C library's mmap.
wrong.py NODE nothing: opens it, and does nothing with it.
wrong.py NODE fall-back: maps the portal, and copies by itself if it cannot.
"""

import ctypes
import mmap
import os
import struct
import sys

CODE = {
    "movdir64b": b"\x66\x0f\x38\xf8\x3e\x31\xc0\xc3",
    "enqcmd": b"\xf2\x0f\x38\xf8\x3e\x0f\x94\xc0\x0f\xb6\xc0\xc3",
}
SYS_MMAP = 9

node, kind = sys.argv[1:3]
fd = os.open(node, os.O_RDWR)
if kind == "raw":
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    at = libc.syscall(SYS_MMAP, None, 4096, mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    print("raw", os.strerror(ctypes.get_errno()) if at == -1 else "mapped")
    sys.exit()
if kind == "nothing":
    sys.exit()
try:
    mapped = mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE)
except OSError as error:
    print("falls back:", error.strerror)
    sys.exit()
if kind == "fall-back":
    print("mapped")
    sys.exit()
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(CODE[kind])


def address(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


submit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64)(address(code))
memory = mmap.mmap(-1, 4096)
memory[0:64] = struct.pack("<IIQ", 0, 0, 0) + bytes(48)
for _ in range(int(sys.argv[3])):
    submit(address(mapped), address(memory))
