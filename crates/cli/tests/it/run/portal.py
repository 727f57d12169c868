"""A program that submits through a portal, with instructions that it assembles itself.

portal.py NODE movdir64b|enqcmd: prints what became of each thing that it tries.
"""

import ctypes
import mmap
import os
import signal
import struct
import sys
import threading
import time

NODE, INSTRUCTION = sys.argv[1:]
# What RSI points at is written to where RDI points: ModRM 3E.
CODE = {
    "movdir64b": b"\x66\x0f\x38\xf8\x3e\x31\xc0\xc3",  # ...; xor eax, eax; ret
    "enqcmd": b"\xf2\x0f\x38\xf8\x3e\x0f\x94\xc0\x0f\xb6\xc0\xc3",  # ...; setz al; movzx eax, al; ret
}[INSTRUCTION]
MEMMOVE, VALID = 3 << 24, 0x0C
RWX = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC


def address(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


code = mmap.mmap(-1, 4096, prot=RWX)
code.write(CODE)
submit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64)(address(code))

fd = os.open(NODE, os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
if libc.mmap(None, 8192, mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0) == ctypes.c_void_p(-1).value:
    print("two pages", os.strerror(ctypes.get_errno()))
mapped = mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE)
os.close(fd)
portal = address(mapped)


def copy(memory, source, target, size):
    """Copies by the device; descriptor and record lie at the start of `memory`. The status."""
    base = address(memory)
    record = base + 64
    memory[64:96] = bytes(32)
    memory[0:64] = struct.pack("<IIQQQI", 0, MEMMOVE | VALID, record, source, target, size) + bytes(28)
    while submit(portal, base):
        time.sleep(0)
    end = time.monotonic() + 60
    while memory[64] == 0:
        if time.monotonic() > end:
            return "none"
        time.sleep(0)
    return memory[64] & 0x3F


def tried(size, seed):
    """A copy with what came of it."""
    memory = mmap.mmap(-1, 4096)
    source, target = mmap.mmap(-1, size), mmap.mmap(-1, size)
    source[:] = bytes((seed + i * 7) % 251 for i in range(size))
    target[:] = bytes(size)
    status = copy(memory, address(source), address(target), size)
    return status, source[:] == target[:]


print("copy", *tried(8192, 1))

results = []
begin = threading.Barrier(8)


def several(seed):
    begin.wait()
    results.extend(tried(4096 + 64 * seed, seed + i) for i in range(25))


threads = [threading.Thread(target=several, args=(seed,)) for seed in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("threads", len(results), set(results))

untouched = mmap.mmap(-1, 4096)
memory, target = mmap.mmap(-1, 4096), mmap.mmap(-1, 4096)
target[:] = bytes(4096)
print("untouched", copy(memory, address(untouched), address(target), 4096))
print("nothing there", copy(memory, 0x1000, address(target), 64))

child = os.fork()
if child == 0:
    # Mappings of a portal are not inherited.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(30)
    submit(portal, address(memory))
    os._exit(0)
_, how = os.waitpid(child, 0)
print("child", signal.Signals(os.WTERMSIG(how)).name if os.WIFSIGNALED(how) else "lives")
print("copy", *tried(65536, 5))
