"""What the stand-in for CuPy has, CuPy has: this needs CuPy, and no GPU."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from typing import Any

import pytest

from tests.exec.devices.fake_cupy import Event, FakeArray, FakeGpu, Pointer, Stream

if find_spec("cupy") is None:
    pytest.skip("no CuPy is here, which is no part of `make test`", allow_module_level=True)

import cupy


def public(of: Any) -> list[str]:
    return [name for name in vars(of) if not name.startswith("_")]


def test_every_name_is_cupys() -> None:
    module = FakeGpu().module
    for name in public(module.cuda):
        assert hasattr(cupy.cuda, name), name
    for name in public(module.cuda.runtime):
        assert hasattr(cupy.cuda.runtime, name), name
    for name in public(module.get_default_memory_pool()):
        assert hasattr(cupy.cuda.MemoryPool, name), name
    ours = {"gpu", "clock", "does", "name"}
    for theirs, stand_in in (
        (cupy.cuda.Stream, Stream),
        (cupy.cuda.Event, Event),
        (cupy.cuda.MemoryPointer, Pointer),
        (cupy.ndarray, FakeArray),
    ):
        names = {*public(stand_in)} - ours
        missing = {name for name in names if not hasattr(theirs, name)}
        # The buffer is the stand-in's own.
        assert missing <= {"buffer"}


def test_what_is_made_takes_what_it_is_given() -> None:
    assert "disable_timing" in inspect.signature(cupy.cuda.Event).parameters
    assert "non_blocking" in inspect.signature(cupy.cuda.Stream).parameters
    memory = cupy.cuda.UnownedMemory(4096, 64, object(), 0)
    pointer = cupy.cuda.MemoryPointer(memory, 0)
    array = cupy.ndarray((4, 4), "float32", memptr=pointer)
    assert (array.data.ptr, array.nbytes, array.device.id) == (4096, 64, 0)
    # What says whether somebody holds a variable's buffer.
    assert array.view().base is array
    assert array.view()[1:].base is array
    assert array.reshape(-1).base is array
    cupy.RawModule(code="", options=("--std=c++17",))
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
