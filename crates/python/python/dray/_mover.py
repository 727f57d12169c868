"""Movers: memory operations on buffers of Python objects."""

from __future__ import annotations

import asyncio
import atexit
import os
import weakref
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

from . import _dray
from ._buffer import Buffer

R = TypeVar("R")


class _Operations(Generic[R]):
    """What a mover does. Lengths are those of the buffers in bytes, whatever their elements: 1 to 4294967295."""

    __slots__ = ()

    def _do(
        self,
        name: str,
        source: Buffer | None = None,
        destination: Buffer | None = None,
        second: Buffer | None = None,
        number: int = 0,
    ) -> R:
        raise NotImplementedError

    def noop(self) -> R:
        """Do nothing, which takes its time."""
        return self._do("noop")

    def copy(self, source: Buffer, destination: Buffer) -> R:
        """Copy ``source`` to ``destination``, which is as long and shares no byte with it."""
        return self._do("copy", source, destination)

    def dualcast(self, source: Buffer, first: Buffer, second: Buffer) -> R:
        """Copy ``source`` to two buffers, whose addresses are alike in their low 12 bits."""
        return self._do("dualcast", source, first, second)

    def fill(self, destination: Buffer, pattern: int = 0) -> R:
        """Fill a buffer with an 8-byte pattern, its lowest byte first."""
        return self._do("fill", None, destination, None, pattern)

    def compare(self, first: Buffer, second: Buffer) -> R:
        """Compare two buffers; ``value`` is the offset in bytes of the first difference, or None.

        A device reports a multiple of what it compares at a time.
        """
        return self._do("compare", first, second)

    def compare_pattern(self, source: Buffer, pattern: int) -> R:
        """Compare a buffer with an 8-byte pattern; ``value`` as that of ``compare``."""
        return self._do("compare_pattern", source, None, None, pattern)

    def crc32c(self, source: Buffer, seed: int = 0) -> R:
        """Take the CRC32C of a buffer: ``value``."""
        return self._do("crc32c", source, None, None, seed)

    def copy_crc32c(self, source: Buffer, destination: Buffer, seed: int = 0) -> R:
        """Copy, and take the CRC32C: ``value``."""
        return self._do("copy_crc32c", source, destination, None, seed)

    def crc64(self, source: Buffer, seed: int = 0) -> R:
        """Take the CRC-64 of a buffer; a device of version 2 has it."""
        return self._do("crc64", source, None, None, seed)

    def copy_crc64(self, source: Buffer, destination: Buffer, seed: int = 0) -> R:
        """Copy, and take the CRC-64; a device of version 2 has it."""
        return self._do("copy_crc64", source, destination, None, seed)

    def create_delta(self, first: Buffer, second: Buffer, record: Buffer) -> R:
        """Record where two buffers differ; ``value`` is the bytes of the record.

        The buffers have the same length, a multiple of 8 and at most 512 KiB; all are aligned to 8 bytes. ``overflow_at``
        says how far the comparison came if the record, of 80 bytes or more, was too short.
        """
        return self._do("create_delta", first, second, record)

    def apply_delta(self, record: Buffer, record_bytes: int, destination: Buffer) -> R:
        """Apply the first ``record_bytes`` of a delta record to a buffer."""
        return self._do("apply_delta", record, destination, None, record_bytes)

    def cache_flush(self, buffer: Buffer) -> R:
        """Evict a buffer from the processor's caches."""
        return self._do("cache_flush", None, buffer)


class Mover(_dray.Mover, _Operations[_dray.Completion]):
    """Executes memory operations. All threads may use it.

    ``backend`` is ``any`` (all work queues of this machine, and the core where there is none), ``hardware``, ``virtual`` (a
    device of this process) or ``cpu``. Operations below ``threshold`` bytes go to the core; 0: none does because of its size.
    ``checked`` has the core and the virtual device look at addresses before they touch them, so that a mapped file that was
    cut short is an error and no signal.

    A method waits for the end, and other threads run meanwhile: ``start`` has the same methods, which return at once with an
    ``Operation``, and ``aio`` has them as coroutines for asyncio. Buffers are objects with the buffer protocol, contiguous and,
    where they are written, writable. They stay exported until the operation has ended: a bytearray cannot be resized
    meanwhile. Who reads or writes their bytes meanwhile finds those of before or after.

    >>> with Mover("cpu") as mover:
    ...     target = bytearray(4)
    ...     mover.copy(b"data", target)
    ...     bytes(target)
    Completion(executor='cpu')
    b'data'
    """

    def __new__(cls, backend: str = "any", *, threshold: int = 0, checked: bool = True) -> Mover:
        mover = super().__new__(cls, backend, threshold=threshold, checked=checked)
        _OPEN.add(mover)
        return mover

    def __init__(self, backend: str = "any", *, threshold: int = 0, checked: bool = True) -> None:
        pass

    def _do(self, name, source=None, destination=None, second=None, number=0):
        return self.start_operation(name, source, destination, second, number).result()

    @property
    def start(self) -> _Operations[_dray.Operation]:
        """The same operations, which return at once."""
        return _Start(self)

    @property
    def aio(self) -> _Aio:
        """The same operations as coroutines; a coroutine that is cancelled cancels its operation, and does not wait for its end.

        ``aio.wait(operation)`` waits for one that ``start`` gave, and leaves it alone if it is cancelled itself.
        """
        return _Aio(self)

    def __enter__(self) -> Mover:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


# Their threads end before the interpreter does.
_OPEN: weakref.WeakSet[Mover] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    # Daemon threads go on meanwhile.
    _dray.end()
    for mover in list(_OPEN):
        mover.close()
    _dray.join_left()


os.register_at_fork(after_in_child=_dray.forked)


class _Start(_Operations[_dray.Operation]):
    __slots__ = ("_mover",)

    def __init__(self, mover: Mover) -> None:
        self._mover = mover

    def _do(self, name, source=None, destination=None, second=None, number=0):
        return self._mover.start_operation(name, source, destination, second, number)


class _Aio(_Operations[Coroutine[Any, Any, _dray.Completion]]):
    __slots__ = ("_mover",)

    def __init__(self, mover: Mover) -> None:
        self._mover = mover

    async def _do(self, name, source=None, destination=None, second=None, number=0):
        operation = self._mover.start_operation(name, source, destination, second, number)
        try:
            return await self.wait(operation)
        except asyncio.CancelledError:
            operation.cancel()
            raise

    async def wait(self, operation: _dray.Operation) -> _dray.Completion:
        """Wait for the end of an operation. Raises as ``Operation.result`` does."""
        if not operation.done():
            await _Loop.running().end_of(operation)
        return operation.result()


class _Loop:
    """Operations that coroutines of one event loop wait for."""

    _all: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Loop] = weakref.WeakKeyDictionary()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # It must not keep the loop, which is the key.
        self._loop = weakref.ref(loop)
        self._signal = _dray.Signal()
        self._waiting: dict[asyncio.Future[None], _dray.Operation] = {}

    @classmethod
    def running(cls) -> _Loop:
        loop = asyncio.get_running_loop()
        found = cls._all.get(loop)
        if found is None:
            found = cls._all[loop] = cls(loop)
        return found

    async def end_of(self, operation: _dray.Operation) -> None:
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.add_reader(self._signal.fileno(), self._ended)
        future = loop.create_future()
        self._waiting[future] = operation
        operation.tells(self._signal)
        try:
            await future
        finally:
            self._waiting.pop(future, None)
            if not self._waiting:
                loop.remove_reader(self._signal.fileno())

    def _ended(self) -> None:
        self._signal.clear()
        for future, operation in self._waiting.items():
            if operation.done() and not future.done():
                future.set_result(None)
