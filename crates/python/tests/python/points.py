"""What the tests of sweeps run, in processes that import it."""

import os
import signal
from concurrent.futures import Executor, Future
from pathlib import Path as File


def thirds(name, number):
    return [{"third_ns": number / 3, "text": name * number}]


def square(number):
    return [{"square": number * number}]


def refuses_two(number):
    if number == 2:
        raise ValueError("two is refused")
    return square(number)


def of_seeds(scale, seeds):
    return [{"seed": seed, "value": seed * scale} for seed in seeds]


def killed(number, victim):
    """Kills its process each time."""
    if number == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    return square(number)


def of_file(file, number=0):
    return [{"text": File(file).read_text(), "number": number}]


def killed_once(number, kill):
    """Kills its process, the first time that it gets there."""
    try:
        File(kill).touch(exist_ok=False)
    except FileExistsError:
        return square(number)
    os.kill(os.getpid(), signal.SIGKILL)


class Ends(Executor):
    """Runs so many tasks, and is gone then."""

    def __init__(self, after):
        self.left = after

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        self.left -= 1
        if self.left < 0:
            future.set_exception(KilledError("the executor is gone"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


class KilledError(RuntimeError):
    pass
