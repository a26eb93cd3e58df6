"""Types read for the first time by several threads at once."""

import subprocess
import sys

# A crash of the interpreter must fail this test, not end the run: hence a process of its own.
_PROGRAM = """
from __future__ import annotations

import sys
import threading

from kubewright.api import Model, decode, from_wire

sys.setswitchinterval(1e-6)
barrier = threading.Barrier(4)


def nested(depth: int) -> list[type[Model]]:
    made: list[type[Model]] = []
    kind: object = int
    for level in range(depth):
        fields = {f"f{index}": list[kind] | None for index in range(6)}
        kind = type(Model)(f"Level{level}", (Model,), {"__annotations__": fields} | dict.fromkeys(fields))
        made.append(kind)
    return made


def read(first, cls):
    barrier.wait()
    first(cls)


for _ in range(30):
    kinds = nested(20)
    ways = [lambda cls: decode(cls, b'{"f0":[{"f1":[{}]}]}'), lambda cls: from_wire(cls, {"f0": [{"f1": [{}]}]})]
    threads = [
        threading.Thread(target=read, args=(ways[index % 2], kinds[-1 - index // 2])) for index in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("whole")
"""


def test_threads_may_read_a_type_for_the_first_time_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", _PROGRAM],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "whole\n", "")
