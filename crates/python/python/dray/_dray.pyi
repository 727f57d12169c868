"""What the package has of Rust."""

from collections.abc import Sequence

from ._buffer import Buffer

__version__: str

class OperationError(RuntimeError):
    """An operation that was begun and has failed, or was lost with its device."""

class Completion:
    """How an operation that succeeded ended: what it gives, who executed it and why."""

    def __init__(self, *fields: object) -> None: ...
    @property
    def value(self) -> int | None:
        """The checksum; the offset in bytes of the first difference, or None; the bytes of a delta record; else None."""
    @property
    def overflow_at(self) -> int | None:
        """Bytes that were compared before a delta record was full; None: all."""
    @property
    def executor(self) -> str:
        """``cpu`` if the core has executed any of it, else ``virtual`` or ``hardware``."""
    @property
    def reason(self) -> str | None:
        """Why the core has executed any of it; None: a device has done all, or the core is what was asked for."""
    @property
    def device_bytes(self) -> int: ...
    @property
    def core_bytes(self) -> int: ...
    @property
    def stripes(self) -> int:
        """Descriptors into which it was divided."""
    @property
    def resumed_faults(self) -> int:
        """Page faults after which the device went on."""
    @property
    def retries(self) -> int:
        """Submissions that a queue without room did not accept."""

class Operation:
    """An operation that was started. Its buffers stay exported until it has ended.

    One that nobody holds any more is executed all the same.
    """

    def done(self) -> bool:
        """Whether it has ended: nothing accesses its buffers any more."""
    def result(self, timeout: float | None = None) -> Completion:
        """Wait for the end, at most so many seconds.

        Raises OperationError if it failed, ValueError if it was never possible, TimeoutError.
        """
    def cancel(self) -> None:
        """Take it back if the mover has not begun with it.

        It ends in any case, and ``result`` says how: OperationError if it was not executed. Until then a device may access
        its buffers.
        """
    def tells(self, signal: Signal) -> None:
        """Make a descriptor readable when it ends, or now if it has."""

class Signal:
    """An eventfd for an event loop."""

    def __init__(self) -> None: ...
    def fileno(self) -> int: ...
    def clear(self) -> None: ...

class Mover:
    def __init__(self, backend: str = "any", *, threshold: int = 0, checked: bool = True) -> None: ...
    @property
    def note(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def start_operation(
        self,
        name: str,
        source: Buffer | None = None,
        destination: Buffer | None = None,
        second: Buffer | None = None,
        number: int = 0,
    ) -> Operation: ...
    def close(self) -> None: ...

def end() -> None: ...
def forked() -> None: ...
def join_left() -> None: ...
def answer(words: Sequence[str]) -> tuple[str, str, int]: ...
def platform(name: str, values: Sequence[tuple[str, float]]) -> str: ...
def platforms() -> list[str]: ...
