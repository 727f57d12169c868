"""A page that the program itself brings in (userfaultfd(2)), as the source of a copy by the device.

missing.py NODE: while the page is missing the copy waits, and what else is asked of the device does not.
"""

import ctypes
import mmap
import os
import struct
import sys
import time

NODE = sys.argv[1]
# movdir64b rdi, [rsi]; ret
CODE = b"\x66\x0f\x38\xf8\x3e\xc3"
MEMMOVE, VALID, PAGE = 3 << 24, 0x0C, 4096
USERFAULTFD, API, REGISTER, ZEROPAGE = 323, 0xC018AA3F, 0xC020AA00, 0xC020AA04
STATE = "/sys/bus/dsa/devices/dsa0/state"
RWX = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC

libc = ctypes.CDLL(None, use_errno=True)


def address(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def tell(fd, number, *values):
    request = ctypes.create_string_buffer(struct.pack(f"<{len(values)}Q", *values))
    if libc.ioctl(fd, ctypes.c_ulong(number), request):
        raise OSError(ctypes.get_errno(), "userfaultfd")


faults = libc.syscall(USERFAULTFD, os.O_CLOEXEC)
if faults < 0:
    print("no userfaultfd:", os.strerror(ctypes.get_errno()))
    sys.exit()
tell(faults, API, 0xAA, 0, 0)
source, target, memory = (mmap.mmap(-1, PAGE) for _ in range(3))
target[:] = b"x" * PAGE
memory[:] = bytes(PAGE)
tell(faults, REGISTER, address(source), PAGE, 1, 0)

node = os.open(NODE, os.O_RDWR)
mapped = mmap.mmap(node, PAGE, mmap.MAP_SHARED, mmap.PROT_WRITE)
code = mmap.mmap(-1, PAGE, prot=RWX)
code.write(CODE)
submit = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)(address(code))
base = address(memory)
memory[0:36] = struct.pack("<IIQQQI", 0, MEMMOVE | VALID, base + 64, address(source), address(target), PAGE)
submit(address(mapped), base)

child = os.fork()
if child == 0:
    with open(STATE) as state:
        os._exit(0 if state.read() == "enabled\n" else 1)
until = time.monotonic() + 20
ended = 0
while not ended and time.monotonic() < until:
    ended, how = os.waitpid(child, os.WNOHANG)
    time.sleep(0.001)
print("asked meanwhile", ended == child and how == 0)
print("copied meanwhile", memory[64])
tell(faults, ZEROPAGE, address(source), PAGE, 0, 0)
if not ended:
    os.waitpid(child, 0)
while memory[64] == 0:
    time.sleep(0)
print("copied", memory[64], target[:] == bytes(PAGE))
