"""A simulated accelerator: a device whose memory is not the host's, on a machine that has no other.

Its array module, `xp`, is one checking proxy over NumPy. It computes at once, into buffers that
only the device sees, and refuses what a GPU's arrays refuse (CuPy's are the model):

- its arrays mix with no host array and with no other device's; scalars are welcome;
- nothing makes a host array of them but the device's own `fetch`; a kernel that asks for a value,
  as `if` and `int()` do, waits for the device, and is counted as waiting;
- fresh memory and freed memory hold poison, and what is freed cannot be used;
- what a GPU does silently or in any order (indices outside, or twice where they are written) is an
  error, or poison.

>>> device = Simulated()
>>> x = device.own(np.ones(3, np.float32))
>>> x + np.ones(3, np.float32)
Traceback (most recent call last):
TypeError: an array of /job:localhost/task:0/device:simulated:0 does not mix with a host array
>>> device.fetch(device.xp.sum(x * 2))
np.float32(6.0)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from flowbook.exec.devices import cupy_subset as subset
from flowbook.exec.devices.device import Device
from flowbook.exec.devices.kinds import DeviceKind, define_kind
from flowbook.graph.model import dtypes
from flowbook.graph.model.errors import InternalError, ResourceExhaustedError

Array = np.ndarray[Any, Any]


class Simulated(Device):
    """A simulated device of this process.

    Args:
        index: its number.
        memory_limit: how many bytes its arrays may take together; None for any.

    Attributes:
        memory_limit: as given.
        used: how many bytes its arrays take.
        peak: the most that they have taken at once; whoever counts from now on sets it to `used`.
        copied_in: how many bytes went from the host's memory to the device's.
        copied_out: how many bytes went back.
        waits: how often a kernel waited for a value, or for a size that depends on values.
    """

    fetches_together = True

    def __init__(self, index: int = 0, memory_limit: int | None = None) -> None:
        super().__init__(
            f"/job:localhost/task:0/device:simulated:{index}", ArrayModule(self, np, "xp")
        )
        self.memory_limit = memory_limit
        self.used = 0
        self.peak = 0
        self.copied_in = 0
        self.copied_out = 0
        self.waits = 0

    def own(self, array: Any) -> SimulatedArray:
        """A copy of a host array or scalar in this device's memory.

        Raises:
            ResourceExhaustedError: if it does not fit there.
            TypeError: if it holds strings, or other Python objects.
        """
        buffer = np.array(array)
        self.copied_in += buffer.nbytes
        return _Call(self).array(buffer)

    def fetch(self, array: Any) -> Any:
        """A copy of an array in host memory; what has no dimensions is a scalar."""
        buffer = _Call(self).buffer(array)
        self.copied_out += buffer.nbytes
        return buffer.copy() if buffer.ndim else buffer[()]

    def check(self, value: Any) -> bool:
        """Whether a value is an array of this very device."""
        return isinstance(value, SimulatedArray) and value.device is self

    def free(self, array: SimulatedArray) -> None:
        """Give an array's memory back, whatever other arrays lie in it; none can be used again."""
        array.memory.free()

    def unnoticed(self, error: np.linalg.LinAlgError) -> Exception:
        """What to raise where LAPACK reports a matrix, and the device's library does not."""
        return InternalError(
            f"{error}: a GPU would not notice; the kernel has to see it in what it gives"
        )

    def allocate(self, size: int) -> None:
        """Take a number of bytes.

        Raises:
            ResourceExhaustedError: if there are not so many left.
        """
        if self.memory_limit is not None and self.used + size > self.memory_limit:
            raise ResourceExhaustedError(
                f"{self.name} is out of memory: {size} bytes were asked for, and {self.used} of "
                f"{self.memory_limit} are in use"
            )
        self.used += size
        if self.used > self.peak:
            self.peak = self.used

    def taken(self) -> tuple[int, int]:
        """See `Device`."""
        return self.used, self.peak

    def release(self, size: int) -> None:
        """Take a number of bytes back."""
        self.used -= size


define_kind(DeviceKind("simulated", Simulated), lambda dtype: dtype is not dtypes.string)


class _Memory:
    """An allocated piece of a device's memory, which lasts as long as the last array in it."""

    __slots__ = ("device", "is_freed", "owner")

    def __init__(self, device: Simulated, owner: Array) -> None:
        self.device = device
        self.owner = owner
        self.is_freed = False

    def free(self) -> None:
        """Poison it and give it back, unless that is done."""
        if not self.is_freed:
            self.is_freed = True
            self.device.release(self.owner.nbytes)
            _poison(self.owner)

    def __del__(self) -> None:
        if not self.is_freed:
            self.device.release(self.owner.nbytes)


_WITHOUT_NAN = (*dtypes.SMALL_INTS, dtypes.float4_e2m1fn)


def _poison(buffer: Array, where: Any = ...) -> None:
    """Overwrite values with such as no computation gives by chance: NaN, or the largest."""
    dtype = dtypes.as_dtype(buffer.dtype)
    if dtype.is_integer or dtype in _WITHOUT_NAN:
        content = dtype.max
    else:
        content = True if dtype is dtypes.bool else np.nan
    buffer[where] = np.array(content).astype(buffer.dtype)


class SimulatedArray:
    """An array in the memory of a simulated device, as far as CuPy's arrays go.

    Attributes:
        device: where it lies.
        memory: the piece of memory that it lies in.
        origin: the first array that lay there, which lasts as long as those that show parts of it
            (CuPy's `base`); None of itself.
    """

    __slots__ = ("_buffer", "device", "memory", "origin")
    __hash__ = None  # type: ignore[assignment]
    # NumPy's operators leave arrays of this type to theirs, and its functions refuse them.
    __array_ufunc__ = None

    def __init__(
        self,
        device: Simulated,
        memory: _Memory,
        buffer: Array,
        origin: SimulatedArray | None = None,
    ) -> None:
        self.device = device
        self.memory = memory
        self.origin = origin
        self._buffer = buffer

    @property
    def buffer(self) -> Array:
        """What only the device sees.

        Raises:
            InternalError: if its memory was given back.
        """
        if self.memory.is_freed:
            raise InternalError(f"{self!r} is used after its memory was given back")
        return self._buffer

    @property
    def flags(self) -> SimpleNamespace:
        """How it lies in memory."""
        flags = self.buffer.flags
        return SimpleNamespace(
            c_contiguous=flags.c_contiguous,
            f_contiguous=flags.f_contiguous,
            owndata=flags.owndata,
        )

    @property
    def real(self) -> Any:
        """The real parts, as a view."""
        return _Call(self.device).part(self, "real")

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        """The imaginary parts, as a view if it has some."""
        return _Call(self.device).part(self, "imag")

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    def __getattr__(self, name: str) -> Any:
        described = getattr(np.ndarray, name, None)
        if described is None or name.startswith("__") or name in subset.MISSING_OF_ARRAYS:
            raise AttributeError(f"arrays of {self.device.name} have no {name!r}")
        if not callable(described):
            return _Call(self.device).part(self, name)
        if name in _METHODS_ALONE or not hasattr(np, name):
            return partial(_Function(self.device, described, name), self)
        return partial(getattr(self.device.xp, name), self)

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> Any:
        """Its values in another dtype; those that do not fit an integer are poison."""
        buffer = self.buffer
        call = _Call(self.device)
        call.given.append(self)
        with np.errstate(all="ignore"):
            found = buffer.astype(dtype, order=order, copy=copy)  # type: ignore[call-overload]
            if buffer.dtype.kind in "fV" and found.dtype.kind in "iu":
                limits = np.iinfo(found.dtype)
                wide = buffer.astype(np.float64)
                _poison(found, ~((wide > limits.min - 1.0) & (wide < limits.max + 1.0)))
        return call.result(found)

    # Values: the host waits for them.

    def item(self) -> Any:
        """Its one value, for which the host waits."""
        return self._awaited().item()

    def tolist(self) -> Any:
        """Its values, for which the host waits."""
        return self._awaited().tolist()

    def _awaited(self) -> Any:
        self.device.waits += 1
        return self.device.fetch(self)

    def __bool__(self) -> bool:
        return bool(self._awaited())

    def __int__(self) -> int:
        return int(self._awaited())

    def __float__(self) -> float:
        return float(self._awaited())

    def __complex__(self) -> complex:
        return complex(self._awaited())

    def __str__(self) -> str:
        return str(self._awaited())

    def __format__(self, specification: str) -> str:
        return format(self._awaited(), specification)

    def __array__(self, *args: Any, **kwargs: Any) -> Array:
        raise TypeError(
            f"an array of {self.device.name} does not become a host array by itself: kernels "
            "compute with `xp`, and whoever needs its values asks the device to fetch them"
        )

    def __array_function__(self, function: Callable[..., Any], *_: Any) -> Any:
        raise TypeError(
            f"numpy.{function.__name__} takes no array of {self.device.name}: kernels compute "
            "with `xp`"
        )

    # Parts

    def __len__(self) -> int:
        return len(self.buffer)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        call = _Call(self.device)
        place = call.key(key)
        # How many elements a mask chooses decides the size of what comes.
        self.device.waits += call.has_mask
        call.given.append(self)
        return call.result(call.indexed(lambda: self.buffer[place]))

    def __setitem__(self, key: Any, value: Any) -> None:
        call = _Call(self.device)
        place = call.key(key)
        content = call.operand(value)
        self.device.waits += call.has_mask and np.ndim(content) > 0
        if call.has_indices and np.ndim(content):
            times = np.zeros(self.shape, np.int64)
            call.indexed(lambda: np.add.at(times, place, 1))
            if times.size and times.max() > 1:
                raise InternalError(
                    "a kernel writes an element of an array more than once: devices do so in any "
                    "order"
                )
        with np.errstate(all="ignore"):
            call.indexed(lambda: self.buffer.__setitem__(place, content))

    def __repr__(self) -> str:
        shape = list(self._buffer.shape)
        return f"<SimulatedArray {self._buffer.dtype} {shape} on {self.device.name}>"


# Methods that NumPy's functions of the same names differ from.
_METHODS_ALONE = frozenset({"copy", "partition", "reshape", "sort", "transpose"})

_OPERATIONS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"),
    *("lshift", "rshift", "and", "or", "xor"),
)
OPERATORS = (
    *(f"__{prefix}{name}__" for name in _OPERATIONS for prefix in ("", "r", "i")),
    *("__divmod__", "__rdivmod__", "__matmul__", "__rmatmul__"),
    *("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"),
    *("__neg__", "__pos__", "__abs__", "__invert__"),
)


def _operator(name: str) -> Callable[..., Any]:
    function = getattr(np.ndarray, name)

    def apply(self: SimulatedArray, *others: Any) -> Any:
        call = _Call(self.device)
        operands = [call.operand(value) for value in (self, *others)]
        with np.errstate(all="ignore"):
            return call.result(function(*operands))

    apply.__name__ = name
    return apply


for _name in OPERATORS:
    setattr(SimulatedArray, _name, _operator(_name))


class _Call:
    """One call on a device's arrays: from them to buffers, and back from what was computed.

    Attributes:
        device: the device.
        given: its arrays among the arguments.
        has_indices: whether arrays of indices are in a key.
        has_mask: whether arrays of truth values are.
    """

    __slots__ = ("device", "given", "has_indices", "has_mask")

    def __init__(self, device: Simulated) -> None:
        self.device = device
        self.given: list[SimulatedArray] = []
        self.has_indices = False
        self.has_mask = False

    def buffer(self, value: Any) -> Array:
        """The buffer of one of the device's arrays.

        Raises:
            TypeError: if it is something else.
        """
        if isinstance(value, SimulatedArray):
            if value.device is not self.device:
                raise self._mixed(f"one of {value.device.name}")
            self.given.append(value)
            return value.buffer
        raise self._mixed("a host array" if isinstance(value, np.ndarray) else repr(value))

    def argument(self, value: Any) -> Any:
        """An argument of a function: an array, a scalar, or a list of them."""
        if isinstance(value, SimulatedArray | np.ndarray):
            return self.buffer(value)
        if isinstance(value, list | tuple):
            return type(value)([self.argument(item) for item in value])
        return value

    def operand(self, value: Any) -> Any:
        """An operand: an array or a scalar; what else there is may know what to do."""
        if isinstance(value, SimulatedArray | np.ndarray | list | tuple):
            return self.buffer(value)
        return value

    def part(self, array: SimulatedArray, name: str) -> Any:
        """An attribute of an array: a part of it, or what is known of it."""
        return self.result(getattr(self.buffer(array), name))

    def key(self, key: Any) -> Any:
        """What stands between brackets."""
        place = self.argument(key)
        kinds = {array.dtype.kind for array in self.given}
        self.has_indices = bool(kinds & {"i", "u"})
        self.has_mask = "b" in kinds
        return place

    def indexed(self, access: Callable[[], Any]) -> Any:
        """What an access gives.

        Raises:
            InternalError: if indices on the device lie outside.
        """
        try:
            return access()
        except IndexError as error:
            if self.has_indices and not isinstance(error, np.exceptions.AxisError):
                raise InternalError(
                    f"{error}: a GPU would wrap it silently; the kernel has to check its indices"
                ) from error
            raise

    def result(self, found: Any) -> Any:
        """What a function gives, its arrays as the device's; what is no array as it is."""
        if isinstance(found, np.ndarray):
            return self.array(found)
        if isinstance(found, np.generic | bool):
            return self.array(np.asarray(found))
        if isinstance(found, list):
            return [self.result(item) for item in found]
        if isinstance(found, tuple):
            return tuple([self.result(item) for item in found])
        return found

    def array(self, buffer: Array) -> SimulatedArray:
        """A buffer as an array: a given one, a view of one, or a new one."""
        if buffer.dtype.kind in "OSUMm" or buffer.dtype.names is not None:
            raise TypeError(f"{self.device.name} holds numbers, and nothing of {buffer.dtype}")
        owner: Any = buffer
        while getattr(owner, "base", None) is not None:
            owner = owner.base
        origin = None
        for array in self.given:
            if array._buffer is buffer:
                return array
            if array.memory.owner is owner:
                origin = array if array.origin is None else array.origin
        if origin is not None:
            return SimulatedArray(self.device, origin.memory, buffer, origin)
        self.device.allocate(owner.nbytes)
        return SimulatedArray(self.device, _Memory(self.device, owner), buffer)

    def _mixed(self, what: str) -> TypeError:
        return TypeError(f"an array of {self.device.name} does not mix with {what}")


class ArrayModule:
    """A module of functions of host arrays, as one of functions of a device's arrays.

    Args:
        device: the device.
        module: NumPy, one of its modules, or one of SciPy's.
        name: what errors call it.
    """

    def __init__(self, device: Simulated, module: ModuleType, name: str) -> None:
        self.__name__ = name
        self._device = device
        self._module = module

    def over(self, module: ModuleType) -> ArrayModule:
        """The same over another module."""
        return ArrayModule(self._device, module, module.__name__)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        full = f"{self.__name__}.{name}"
        if name in subset.MISSING:
            raise AttributeError(f"{self._device.name} has no {full}")
        if isinstance(found, ModuleType):
            found = ArrayModule(self._device, found, full)
        elif callable(found) and not isinstance(found, type):
            found = _Function(self._device, found, full)
        setattr(self, name, found)
        return found


class _Function:
    """A function of host arrays as a function of a device's arrays."""

    def __init__(self, device: Simulated, function: Callable[..., Any], name: str) -> None:
        self._device = device
        self._function = function
        self._full_name = name
        self._name = name.rpartition(".")[2]
        parameters = _parameters(function)
        self._parameters = [p.name for p in parameters if p.kind in _POSITIONAL]
        self._rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
        self._refused = subset.MISSING_KEYWORDS | subset.MISSING_KEYWORDS_OF.get(
            self._name, frozenset()
        )

    def __getattr__(self, name: str) -> Any:
        """A method of a universal function."""
        function = self._function
        if not isinstance(function, np.ufunc):
            raise AttributeError(f"{self._full_name} has no {name!r}")
        if function.__name__ not in subset.METHODS_OF_UFUNCS.get(name, ()):
            raise AttributeError(f"{self._full_name} of {self._device.name} has no {name!r}")
        return _Function(self._device, getattr(function, name), f"{self._full_name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        names = self._parameters + [self._rest] * (len(args) - len(self._parameters))
        call = _Call(self._device)
        given = [self._argument(call, *pair) for pair in zip(names, args, strict=False)]
        for key in subset.NAMED_OTHERWISE.get(self._name, frozenset()).intersection(kwargs):
            raise TypeError(f"{self._full_name} of {self._device.name} calls no parameter {key!r}")
        named = {key: self._argument(call, key, value) for key, value in kwargs.items()}
        if self._name in subset.ANSWERED_BY_HOST:
            return self._function(*given, **named)
        if self._name in subset.WAITING and call.given:
            self._device.waits += 1
        is_complex = any(array.dtype.kind == "c" for array in call.given)
        if self._name in subset.OF_NO_COMPLEX and is_complex:
            raise TypeError(f"{self._full_name} of {self._device.name} takes no complex numbers")
        if self._name in subset.OF_ONE_BATCH and given[0].shape[:-1] != given[1].shape[:-1]:
            raise ValueError(f"{self._full_name} of {self._device.name} broadcasts no batches")
        call.has_indices = self._name in subset.INDEXING
        found = call.indexed(lambda: self._computed(given, named))
        if self._name in subset.UNINITIALISED:
            _poison(found)
        result = call.result(found)
        if self._name in subset.COPYING_IN and not call.given:
            self._device.copied_in += found.nbytes
        return result

    def _computed(self, args: list[Any], kwargs: Mapping[str, Any]) -> Any:
        try:
            with np.errstate(all="ignore"):
                return self._function(*args, **kwargs)
        except np.linalg.LinAlgError as error:
            raise self._device.unnoticed(error) from error

    def _argument(self, call: _Call, name: str, value: Any) -> Any:
        if name in self._refused:
            raise TypeError(f"{self._full_name} of {self._device.name} takes no {name!r}")
        if name in subset.OF_THE_HOST:
            if _lies_on_a_device(value):
                raise TypeError(
                    f"{name!r} of {self._full_name} is a value of the host's, and here lies on "
                    f"{self._device.name}: an operation names such inputs in `host_args`"
                )
            return value
        if self._name in subset.COPYING_IN and isinstance(value, np.ndarray):
            return value
        return call.argument(value)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@cache
def _parameters(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    try:
        return tuple(inspect.signature(function).parameters.values())
    except ValueError:
        return ()


def _lies_on_a_device(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_lies_on_a_device(item) for item in value)
    return isinstance(value, SimulatedArray)
