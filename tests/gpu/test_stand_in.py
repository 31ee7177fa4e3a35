"""What the stand-in for CuPy has, CuPy has: this needs CuPy, and no GPU."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from flowbook.exec.devices import cupy_subset as subset
from flowbook.exec.devices.pinned import OUT_OF_MEMORY
from tests.exec.devices.fake_cupy import Event, FakeArray, FakeGpu, Pointer, Stream

if find_spec("cupy") is None:
    pytest.skip("no CuPy is here, which is no part of `make test`", allow_module_level=True)

import cupy
import cupyx


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
    ours = {"gpu", "clock", "does", "name", "time", "is_timed"}
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
    assert cupy.cuda.runtime.CUDARuntimeError(OUT_OF_MEMORY).status == OUT_OF_MEMORY
    assert "MemoryAllocation" in str(cupy.cuda.runtime.CUDARuntimeError(OUT_OF_MEMORY))
    with cupyx.errstate(linalg="raise"):
        pass
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)


# What is about dates, NumPy's own settings and its texts.
NO_COMPUTATION = {
    *("array_str", "busday_count", "busday_offset", "datetime_as_string", "datetime_data"),
    *("get_include", "getbufsize", "geterr", "geterrcall", "info", "is_busday", "setbufsize"),
    *("seterr", "seterrcall", "show_config", "show_runtime", "test"),
}
FUNCTIONS = {
    name: function
    for name in {*np.__all__} - NO_COMPUTATION - subset.MISSING
    if callable(function := getattr(np, name)) and not isinstance(function, type)
}


def test_functions_that_are_not_said_to_be_missing_are_cupys() -> None:
    assert {name for name in FUNCTIONS if not hasattr(cupy, name)} == set()
    attributes = {name for name in dir(np.ndarray) if not name.startswith("_")}
    attributes -= subset.MISSING_OF_ARRAYS
    assert {name for name in attributes if not hasattr(cupy.ndarray, name)} == set()


def parameters_of(function: Any) -> dict[str, inspect.Parameter]:
    """The parameters, as far as Python knows them."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def test_parameters_that_are_not_said_to_be_missing_are_cupys() -> None:
    for name, function in FUNCTIONS.items():
        theirs = parameters_of(getattr(cupy, name))
        takes_any = any(each.kind is each.VAR_KEYWORD for each in theirs.values())
        if isinstance(function, np.ufunc) or takes_any or not theirs:
            continue
        known = subset.MISSING_KEYWORDS | subset.MISSING_KEYWORDS_OF.get(name, frozenset())
        known |= subset.NAMED_OTHERWISE.get(name, frozenset()) | theirs.keys()
        named = {
            key
            for key, parameter in parameters_of(function).items()
            if parameter.kind is not parameter.VAR_KEYWORD
        }
        assert named <= known, name


def test_the_dtypes_of_results_are_numpys() -> None:
    """Of one dtype after the other, each for all arguments, as graphs have them."""
    for name, function in FUNCTIONS.items():
        if not isinstance(function, np.ufunc):
            continue
        theirs = getattr(cupy, name)
        if not isinstance(theirs, cupy.ufunc):
            continue
        for dtype in (np.dtype(char) for char in "?bhilqBHILQefdFD"):
            try:
                given = (dtype,) * function.nin + (None,) * function.nout
                wanted = function.resolve_dtypes(given)[function.nin :]
            except TypeError:
                continue
            if name in subset.OF_NO_COMPLEX and dtype.kind == "c":
                continue
            assert outputs_of(theirs, dtype) == [*wanted], (name, dtype)


def outputs_of(function: Any, dtype: np.dtype[Any]) -> list[np.dtype[Any]] | None:
    """What the first of CuPy's loops gives that takes a dtype for all arguments."""
    # CuPy stores bfloat16, whose letter is E.
    for taken, given in (each.split("->") for each in function.types if "E" not in each):
        if all(np.can_cast(dtype, np.dtype(char)) for char in taken):
            return [np.dtype(char) for char in given]
    return None
