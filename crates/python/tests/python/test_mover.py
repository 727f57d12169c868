"""Movers: what they do, who did it, and what hostile buffers get."""

import asyncio
import ctypes
import gc
import mmap
import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
import threading

import numpy
import pytest

import dray


@pytest.fixture(params=["cpu", "virtual"])
def mover(request):
    with dray.Mover(request.param) as mover:
        mover.name = request.param
        yield mover


ONES = (1 << 64) - 1


def crc32c(data, crc=0):
    """Castagnoli's polynomial, bit by bit."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_each_operation(mover):
    source = bytes(range(256)) * 16
    target, other = bytearray(4096), bytearray(4096)
    done = mover.copy(source, target)
    assert target == source
    assert (done.executor, done.value) == (mover.name, None)
    assert done.device_bytes + done.core_bytes == 4096
    mover.fill(target, 0x0807060504030201)
    assert target == bytes([1, 2, 3, 4, 5, 6, 7, 8]) * 512
    assert mover.compare_pattern(target, 0x0807060504030201).value is None
    assert mover.compare(source, bytes(source)).value is None
    other[:] = source
    other[2000] ^= 1
    assert mover.compare(source, other).value // 64 == 2000 // 64
    assert mover.crc32c(b"123456789").value == 0xE3069283 == crc32c(b"123456789")
    assert mover.copy_crc32c(source, other).value == crc32c(source)
    assert other == source
    assert mover.noop().value is None
    mover.cache_flush(other)


def test_delta_records_and_dualcasts(mover):
    pages = mmap.mmap(-1, 5 * 4096)
    first, second, record = (memoryview(pages)[at : at + 4096] for at in (0, 4096, 8192))
    second[8:16] = b"changed!"
    delta = mover.create_delta(first, second, record)
    assert (delta.value, delta.overflow_at) == (10, None)
    mover.apply_delta(record, delta.value, first)
    assert first == second
    mover.dualcast(second, memoryview(pages)[12288:16384], memoryview(pages)[16384:])
    assert pages[12288:16384] == pages[16384:] == second


def test_numpy_arrays_of_any_element(mover):
    source = numpy.arange(1000, dtype=numpy.float64).reshape(10, 100)
    target = numpy.zeros_like(source)
    mover.copy(source, target)
    assert (target == source).all()
    mover.fill(target)
    assert not target.any()


def test_the_core_says_why():
    with dray.Mover("virtual", threshold=65536) as mover:
        small, large = mover.fill(bytearray(64)), mover.fill(bytearray(1 << 20))
    assert (small.executor, small.reason) == ("cpu", "below the threshold")
    assert (large.executor, large.reason, large.device_bytes) == ("virtual", None, 1 << 20)
    with dray.Mover("any") as mover:
        if "the core executes" in mover.note:
            assert mover.fill(bytearray(64)).reason == "no work queue"


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda m: m.copy(b"12345678", bytes(8)), BufferError),
        (lambda m: m.copy(b"123", bytearray(4)), ValueError),
        (lambda m: m.copy(b"", bytearray(0)), ValueError),
        (lambda m: m.copy("text", bytearray(4)), TypeError),
        (lambda m: m.copy(None, bytearray(4)), TypeError),
        (lambda m: m.fill(memoryview(bytearray(8))[::2]), BufferError),
        (lambda m: m.fill(numpy.zeros(8)[::2]), (BufferError, ValueError)),
        (lambda m: m.fill(numpy.zeros((4, 4), order="F")), (BufferError, ValueError)),
        (lambda m: m.fill(numpy.array([object()], dtype=object)), TypeError),
        (lambda m: m.copy(bytes(8), numpy.array([None])), TypeError),
        (lambda m: m.fill((ctypes.py_object * 1)(object())), TypeError),
        (lambda m: m.fill(bytearray(8), 1 << 64), OverflowError),
        (lambda m: m.fill(bytearray(8), -1), OverflowError),
        (lambda m: m.crc32c(b"1", 1 << 32), ValueError),
        (lambda m: m.apply_delta(bytes(16), 1 << 33, bytearray(16)), ValueError),
        (lambda m: m.apply_delta(bytes(10), 20, bytearray(16)), ValueError),
        (lambda m: m.start_operation("explode"), ValueError),
        (lambda m: m.start_operation("fill"), TypeError),
        (lambda m: m.start_operation("noop", b"1"), TypeError),
        # The record says 64 KiB, where the buffer has 64 bytes.
        (lambda m: m.apply_delta(struct.pack("<H8s", 8191, b"12345678"), 10, bytearray(64)), dray.OperationError),
        (lambda m: m.start.noop().result(-1), ValueError),
    ],
)
def test_what_cannot_be_is_refused(mover, ask, error):
    with pytest.raises(error):
        ask(mover)
    # And nothing was left behind.
    assert mover.crc32c(b"123456789").value == 0xE3069283


def test_buffers_of_one_operation_are_apart(mover):
    data = bytearray(128)
    view = memoryview(data)
    for other in (view[0:64], view[1:65], view[63:127]):
        with pytest.raises(ValueError, match="overlap"):
            mover.copy(view[0:64], other)
    mover.copy(view[0:64], view[64:128])
    assert mover.compare(view[0:64], view[0:64]).value is None


def test_a_buffer_in_flight_cannot_be_resized(mover):
    data = bytearray(1 << 20)
    operation = mover.start.fill(data, ONES)
    with pytest.raises(BufferError):
        data.extend(b"more")
    assert operation.result().executor == mover.name
    assert operation.done()
    data.extend(b"more")
    assert data[:-4] == b"\xff" * (1 << 20)
    # A second look gives the same.
    assert operation.result().executor == mover.name


def test_memory_of_an_object_that_nobody_holds_stays(mover):
    operations = [mover.start.crc32c(bytes([n]) * 100_000) for n in range(50)]
    gc.collect()
    for n, operation in enumerate(operations):
        assert operation.result().value == mover.crc32c(bytes([n]) * 100_000).value


def test_operations_that_nobody_holds_are_executed(mover):
    buffers = [bytearray(10_000) for _ in range(200)]
    for buffer in buffers:
        mover.start.fill(buffer, ONES)
    mover.close()
    assert all(buffer == b"\xff" * 10_000 for buffer in buffers)


def test_a_cancelled_operation_is_done_when_it_has_ended(mover):
    buffers = [bytearray(1 << 20) for _ in range(300)]
    operations = [mover.start.fill(buffer, ONES) for buffer in buffers]
    for operation in operations:
        operation.cancel()
    for operation, buffer in zip(operations, buffers):
        while not operation.done():
            pass
        # Its buffer is free at once, and has all or nothing.
        buffer.append(0)
        try:
            operation.result()
            assert buffer[:-1] == b"\xff" * (1 << 20)
        except dray.OperationError as error:
            assert "not executed" in str(error)
            assert buffer == bytes((1 << 20) + 1)


def test_a_completion_is_a_value(mover):
    done = mover.crc32c(b"123456789")
    again = pickle.loads(pickle.dumps(done))
    assert again == done and hash(again) == hash(done) and again.value == 0xE3069283
    assert again != mover.crc32c(b"12345678")
    with pytest.raises((TypeError, ValueError)):
        dray.Completion(1)


def test_a_field_may_be_called_o(mover):
    array = numpy.ones(2, dtype=[("O", "i4"), ("b", "i4")])
    mover.fill(array)
    assert not array["O"].any()


def test_operations_that_are_given_up_release_their_buffers(mover):
    buffers = [bytearray(100_000) for _ in range(64)]
    operations = [mover.start.fill(buffer, ONES) for buffer in buffers]
    for operation in operations:
        operation.cancel()
        # It may have ended before.
        try:
            assert operation.result().executor == mover.name
        except dray.OperationError as error:
            assert "cancelled" in str(error)
    del operations
    mover.close()
    for buffer in buffers:
        while True:
            # The interpreter releases them at its next turn.
            try:
                buffer.append(0)
                break
            except BufferError:
                gc.collect()


def test_a_closed_mover_takes_nothing(mover):
    mover.close()
    mover.close()
    assert mover.closed
    with pytest.raises(ValueError, match="closed"):
        mover.fill(bytearray(8))


def test_a_file_that_was_cut_short_is_an_error():
    with tempfile.TemporaryFile() as file, dray.Mover("cpu") as mover:
        file.truncate(8192)
        pages = mmap.mmap(file.fileno(), 8192)
        file.truncate(4096)
        with pytest.raises(dray.OperationError, match="page fault"):
            mover.crc32c(pages)


def test_threads_share_a_mover(mover):
    errors = []

    def work(seed):
        random = numpy.random.default_rng(seed)
        for _ in range(30):
            source = random.integers(0, 256, random.integers(1, 50_000), dtype=numpy.uint8)
            target = numpy.zeros_like(source)
            mover.copy(source, target)
            if not (source == target).all():
                errors.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_a_mover_is_closed_while_threads_use_it(mover):
    def work():
        while True:
            try:
                mover.fill(bytearray(10_000))
            except (ValueError, dray.OperationError):
                return

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    mover.close()
    for thread in threads:
        thread.join()


def test_coroutines_wait_without_blocking_the_loop(mover):
    async def main():
        sources = [bytes([n]) * 50_000 for n in range(100)]
        ended = await asyncio.gather(*(mover.aio.crc32c(source) for source in sources))
        return [done.value for done in ended] == [mover.crc32c(source).value for source in sources]

    # Another loop has its own descriptor.
    assert asyncio.run(main())
    assert asyncio.run(main())


def test_a_cancelled_coroutine_leaves_the_loop_as_it_was(mover):
    async def main():
        task = asyncio.create_task(mover.aio.fill(bytearray(1 << 22)))
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
        with pytest.raises(ValueError):
            await mover.aio.copy(b"12", bytearray(1))
        return (await mover.aio.crc32c(b"123456789")).value

    assert asyncio.run(main()) == 0xE3069283


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_fork_is_told(mover):
    data = bytearray(1 << 20)
    operation = mover.start.fill(data, ONES)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            try:
                mover.fill(bytearray(8))
            except RuntimeError as error:
                code = 0 if "forked" in str(error) else 2
            mover.close()
            with dray.Mover("cpu") as own:
                code = code or int(own.crc32c(b"123456789").value != 0xE3069283)
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    operation.result()
    assert data == b"\xff" * (1 << 20)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_operations_end():
    with dray.Mover("cpu") as mover:
        for _ in range(300):
            operations = [mover.start.fill(bytearray(64)) for _ in range(40)]
            for operation in operations[::2]:
                operation.cancel()
            child = os.fork()
            if child == 0:
                # Without an end of its own it would wait for ever.
                signal.alarm(20)
                code = 1
                try:
                    with dray.Mover("cpu") as own:
                        code = int(own.start.crc32c(b"123456789").result().value != 0xE3069283)
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    "work",
    [
        "mover = dray.Mover('virtual')\ndef work(): mover.fill(bytearray(1 << 26))",
        "def work():\n mover = dray.Mover('virtual'); mover.fill(bytearray(1 << 22)); mover.close()",
        "def work(): dray.figures(only='fig2')",
    ],
)
def test_a_program_may_end_with_daemon_threads_inside(work):
    script = f"""
import threading, time, dray
{work}
def works():
    while True:
        try:
            work()
        except RuntimeError:
            time.sleep(0.001)
for _ in range(3):
    threading.Thread(target=works, daemon=True).start()
time.sleep(0.3)
"""
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_a_coroutine_waits_for_an_operation_that_goes_on(mover):
    async def main():
        data = bytearray(1 << 26)
        operation = mover.start.fill(data, ONES)
        try:
            await asyncio.wait_for(mover.aio.wait(operation), 0)
        except TimeoutError:
            pass
        one, other = await asyncio.gather(mover.aio.wait(operation), mover.aio.wait(operation))
        assert one == other and operation.done()
        data.append(0)
        return data[:-1] == b"\xff" * (1 << 26)

    assert asyncio.run(main())


def test_a_program_may_end_with_a_mover_open():
    for end in ("", "; del m"):
        script = "import dray; m = dray.Mover('virtual'); ops = [m.start.fill(bytearray(1 << 24)) for _ in range(9)]" + end
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stderr) == (0, ""), end


def test_back_ends_are_named():
    with pytest.raises(ValueError, match="any, hardware, virtual and cpu"):
        dray.Mover("gpu")
    if not os.path.exists("/dev/dsa"):
        with pytest.raises(OSError):
            dray.Mover("hardware")
