"""Executes a command as in a container: namespaces and mounts are refused.

contained.py COMMAND...: as the default profiles of docker and podman do by seccomp.
"""

import ctypes
import os
import struct
import sys

EPERM = 1
# Of x86-64: mount, umount2, pivot_root, unshare, setns, open_tree, move_mount, fsopen, fsmount,
# mount_setattr, and clone3, which they answer with ENOSYS.
REFUSED = [165, 166, 155, 272, 308, 428, 429, 430, 432, 442]
CLONE, CLONE3, ENOSYS = 56, 435, 38
NEW_NAMESPACES = 0x7E020000

LOAD, JUMP_EQUAL, JUMP_SET, ANSWER = 0x20, 0x15, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def statement(code, value, yes=0, no=0):
    return struct.pack("=HBBI", code, yes, no, value)


program = [statement(LOAD, 0)]
for number in REFUSED:
    program += [statement(JUMP_EQUAL, number, 0, 1), statement(ANSWER, ERRNO | EPERM)]
program += [statement(JUMP_EQUAL, CLONE3, 0, 1), statement(ANSWER, ERRNO | ENOSYS)]
program += [
    statement(JUMP_EQUAL, CLONE, 0, 3),
    statement(LOAD, 16),
    statement(JUMP_SET, NEW_NAMESPACES, 0, 1),
    statement(ANSWER, ERRNO | EPERM),
    statement(ANSWER, ALLOW),
]
text = ctypes.create_string_buffer(b"".join(program))
head = ctypes.create_string_buffer(struct.pack("=H6xQ", len(program), ctypes.addressof(text)))
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
zero = ctypes.c_ulong(0)
if libc.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero):
    sys.exit(f"no_new_privs: {os.strerror(ctypes.get_errno())}")
if libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(FILTER), ctypes.byref(head), zero, zero):
    sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
