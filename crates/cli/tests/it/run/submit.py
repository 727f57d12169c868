"""Submits descriptors by write(2) and prints what comes of it, one line each."""

import ctypes
import errno
import os
import struct
import sys

NOOP, BATCH, MEMMOVE = 0, 1, 3
ADDRESS_VALID_AND_RECORD = 0x0C
PAGE = 4096

node = os.open(sys.argv[1], os.O_RDWR)
source = ctypes.create_string_buffer(bytes(range(256)) * 16, PAGE)
target = ctypes.create_string_buffer(PAGE)
memory = ctypes.create_string_buffer(128)
record = (ctypes.addressof(memory) + 31) // 32 * 32


def descriptor(operation, first=0, second=0, size=0, completion=record):
    head = ADDRESS_VALID_AND_RECORD | operation << 24
    return struct.pack("<IIQQQIHH24x", 0, head, completion, first, second, size, 0, 0)


def attempt(name, action):
    try:
        print(name, action(), flush=True)
    except OSError as error:
        print(name, errno.errorcode[error.errno], flush=True)


def carry_out(*arguments):
    """Status of the completion record, once it is there."""
    ctypes.memset(record, 0, 32)
    written = os.write(node, descriptor(*arguments))
    assert written == 64, written
    while ctypes.string_at(record, 1) == b"\0":
        os.sched_yield()
    return ctypes.string_at(record, 1)[0]


def in_child(action):
    child = os.fork()
    if child == 0:
        attempt("child", action)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def map_node():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_ssize_t
    arguments = (None, ctypes.c_size_t(PAGE), 2, 1, node, ctypes.c_size_t(0))
    if libc.mmap(*arguments) == -1:
        raise OSError(ctypes.get_errno(), "mmap")
    return "mapped"


def open_again():
    other = os.open(sys.argv[1], os.O_RDWR)
    clients = open("/sys/bus/dsa/devices/wq0.0/clients").read().strip()
    os.close(other)
    return clients


attempt("noop", lambda: carry_out(NOOP))
addresses = ctypes.addressof(source), ctypes.addressof(target)
attempt("copy", lambda: carry_out(MEMMOVE, *addresses, PAGE))
print("same", source.raw == target.raw)
attempt("unmapped", lambda: carry_out(MEMMOVE, PAGE, addresses[1], PAGE))
attempt("two", lambda: os.write(node, descriptor(NOOP) * 2))
attempt("half", lambda: os.write(node, descriptor(NOOP)[:32]))
attempt("misaligned", lambda: os.write(node, descriptor(NOOP, completion=record + 1)))
attempt("batch", lambda: os.write(node, descriptor(BATCH, record, 0, 2)))
attempt("read", lambda: os.read(node, 1))
in_child(lambda: os.write(node, descriptor(NOOP)))
attempt("again", open_again)
for _ in range(50):
    # What was the last close must have happened when the node is opened next.
    os.close(node)
    node = os.open(sys.argv[1], os.O_RDWR)
attempt("after", lambda: carry_out(NOOP))
