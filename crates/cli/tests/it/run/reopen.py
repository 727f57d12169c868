"""Opens a dedicated queue again at once after its mapping has ended: reopen.py NODE TIMES.

By munmap(2) in this process, and in turns by the end of a child. Prints how often each was refused.
"""

import mmap
import os
import sys

NODE, TIMES = sys.argv[1], int(sys.argv[2])


def use():
    fd = os.open(NODE, os.O_RDWR)
    portal = mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE)
    return fd, portal


def unmapped():
    fd, portal = use()
    os.close(fd)
    portal.close()
    return 0


def ended():
    child = os.fork()
    if child == 0:
        try:
            use()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


refused = {"unmapped": 0, "ended": 0}
for _ in range(TIMES):
    for way in (unmapped, ended):
        try:
            refused[way.__name__] += way()
        except OSError:
            refused[way.__name__] += 1
print(refused)
