"""Machine code for a hot loop: its body, written in LLVM's language, which LLVM vectorises.

The body runs once, on symbols in place of arrays; each NumPy function of them, operators included,
writes an instruction.
LLVM works outside the interpreter's lock: what runs beside it is hardly disturbed. It takes some
40 ms for a loop, so nothing is kept on disk, where others could have changed it. This is the one
module that knows llvmlite, which is imported when the first loop is compiled.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.numerics.hot_loop import Hot, HotLoop

if TYPE_CHECKING:
    from llvmlite import ir

_ENTRY = "loop"


@singledispatch
def machine_code(hot: Hot) -> Any:
    """Compile what is hot for this machine's processor.

    Returns:
        What its `native` then is: of a loop, a function that is called as the loop is.

    Raises:
        UnimplementedError: where llvmlite is not installed, the system forbids new machine code, or
            the code makes other numbers than NumPy's form.
    """
    raise NotImplementedError(f"nobody knows how to compile {hot.name!r}")


@machine_code.register
def _(loop: HotLoop) -> Callable[..., None]:
    engine = compiled(lambda: str(_written(loop)))
    native = _callable(loop, engine)
    _try(loop, native)
    return native


def compiled(write: Callable[[], str]) -> Any:
    """Compile a module for this machine's processor.

    Args:
        write: gives the module in LLVM's language; llvmlite is there when it is called.

    Returns:
        An engine, which tells the addresses of the module's functions and keeps them in memory.

    Raises:
        UnimplementedError: where llvmlite is not installed, or the system forbids new machine code.
    """
    try:
        import llvmlite.binding as llvm
    except ModuleNotFoundError:
        raise UnimplementedError(
            "llvmlite, which compiles, is not installed", hint="pip install llvmlite"
        ) from None
    _check_memory()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # It reads the instructions that a module has as they are.
    llvm.initialize_native_asmparser()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3
    )
    module = llvm.parse_assembly(write())
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = True
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def _check_memory() -> None:
    # LLVM does the same, and ends the process where the system refuses.
    if sys.platform == "win32":
        return
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, mmap.PAGESIZE, flags=flags) as page:
        start = ctypes.c_char.from_buffer(page)
        address, size = ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(mmap.PAGESIZE)
        refused = ctypes.CDLL(None).mprotect(address, size, mmap.PROT_READ | mmap.PROT_EXEC)
        del start
    if refused:
        raise UnimplementedError("this system lets no process write machine code")


def _callable(loop: HotLoop, engine: Any) -> Callable[..., None]:
    arguments = [ctypes.c_int64, *[ctypes.c_uint64] * loop.scalars]
    pointers = [ctypes.c_void_p] * (loop.arrays + 1)
    code = ctypes.CFUNCTYPE(None, *arguments, *pointers)(engine.get_function_address(_ENTRY))

    def native(out: Any, *inputs: Any) -> None:
        scalars, arrays = inputs[: loop.scalars], inputs[loop.scalars :]
        turns = out.size // loop.width
        # Machine code writes wherever it is told to: what it is given is checked first.
        _check(out, loop.makes, turns * loop.width)
        if not out.flags.writeable:
            raise ValueError("a loop cannot fill a read-only array")
        for array in arrays:
            _check(array, np.dtype(np.uint64), turns)
        code(turns, *scalars, *(array.ctypes.data for array in arrays), out.ctypes.data)

    # The code lives as long as its engine.
    native.engine = engine  # type: ignore[attr-defined]
    return native


def _check(array: Any, dtype: np.dtype[Any], size: int) -> None:
    if array.dtype != dtype or array.size != size or not array.flags.c_contiguous:
        raise ValueError(
            f"a loop takes contiguous {dtype} [{size}], not {array.dtype} {list(array.shape)}"
        )


def _try(loop: HotLoop, native: Callable[..., None]) -> None:
    turns = loop.trial[-1].size if loop.arrays else 1000
    expected, found = (np.zeros(turns * loop.width, loop.makes) for _ in range(2))
    loop.numpy(expected, *loop.trial)
    native(found, *loop.trial)
    if found.tobytes() != expected.tobytes():
        raise UnimplementedError("the machine code makes other numbers than NumPy")


# ---- from the body to LLVM's language


class _Symbol(NDArrayOperatorsMixin):
    """A number that machine code will have; NumPy's functions and Python's operators take it."""

    __slots__ = ("_builder", "value")

    def __init__(self, builder: ir.IRBuilder, value: ir.Value) -> None:
        self._builder = builder
        self.value = value

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any) -> Any:
        from llvmlite import ir

        of, builder = self.value.type, self._builder
        is_integer = of == _type(np.uint64)
        values = [given.value if isinstance(given, _Symbol) else of(given) for given in inputs]
        if function is np.less:  # 1 where it is less, or else 0.
            made = (
                builder.zext(builder.icmp_unsigned("<", *values), of)
                if is_integer
                else builder.uitofp(builder.fcmp_ordered("<", *values), of)
            )
        elif name := (_OF_INTEGERS if is_integer else _OF_FLOATS).get(function):
            made = getattr(builder, name)(*values)
        elif (name := _INTRINSICS.get(function)) and not is_integer:
            of_floats = ir.FunctionType(of, [of] * len(values))
            made = builder.call(builder.module.declare_intrinsic(name, [of], of_floats), values)
        else:
            return NotImplemented
        return _Symbol(builder, made)

    def view(self, dtype: DTypeLike) -> _Symbol:
        """The number of a dtype whose pattern its lowest bits are."""
        wanted = np.dtype(dtype)
        value = self.value
        if value.type == _type(np.uint64):
            value = self._builder.trunc(value, _type(f"u{wanted.itemsize}"))
        return _Symbol(self._builder, self._builder.bitcast(value, _type(wanted)))


_OF_INTEGERS = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.bitwise_and: "and_",
    np.bitwise_or: "or_",
    np.bitwise_xor: "xor",
    np.left_shift: "shl",
    np.right_shift: "lshr",
}
# Not one of them may be merged with another: each rounds, as NumPy's do.
_OF_FLOATS = {
    np.add: "fadd",
    np.subtract: "fsub",
    np.multiply: "fmul",
    np.divide: "fdiv",
    np.negative: "fneg",
}
_INTRINSICS = {
    np.absolute: "llvm.fabs",
    np.copysign: "llvm.copysign",
    np.floor: "llvm.floor",
    np.maximum: "llvm.maximum",
    np.minimum: "llvm.minimum",
    np.sqrt: "llvm.sqrt",
}


def _type(dtype: DTypeLike) -> ir.Type:
    """The type of a dtype, or of an integer without a sign, in LLVM's language."""
    from llvmlite import ir

    wanted = np.dtype(dtype)
    if wanted.kind == "f":
        return {4: ir.FloatType(), 8: ir.DoubleType()}[wanted.itemsize]
    return ir.IntType(8 * wanted.itemsize)


def _written(loop: HotLoop) -> ir.Module:
    """A module whose one function takes the number of turns, scalars, arrays and the result."""
    from llvmlite import ir

    word, number, pointer = _type(np.uint64), _type(loop.makes), ir.PointerType()
    module = ir.Module()
    pointers = [pointer] * (loop.arrays + 1)
    signature = ir.FunctionType(ir.VoidType(), [word, *[word] * loop.scalars, *pointers])
    function = ir.Function(module, signature, _ENTRY)
    turns, *scalars = function.args[: 1 + loop.scalars]
    *arrays, out = function.args[1 + loop.scalars :]
    # Without it LLVM asks before each run whether writing changes what is still to be read.
    out.add_attribute("noalias")

    before, turn, after = (function.append_basic_block() for _ in range(3))
    builder = ir.IRBuilder(before)
    builder.cbranch(builder.icmp_unsigned("<", word(0), turns), turn, after)

    builder.position_at_end(turn)
    index = builder.phi(word)
    index.add_incoming(word(0), before)
    read = [
        builder.load(builder.gep(array, [index], source_etype=word), typ=word) for array in arrays
    ]
    made = loop.body(*(_Symbol(builder, value) for value in (index, *scalars, *read)))
    for place, symbol in enumerate(made):
        value = symbol.value
        if value.type == word:
            value = builder.trunc(value, number)
        where = builder.add(builder.mul(index, word(loop.width)), word(place))
        builder.store(value, builder.gep(out, [where], source_etype=number))
    following = builder.add(index, word(1))
    index.add_incoming(following, turn)
    builder.cbranch(builder.icmp_unsigned("<", following, turns), turn, after)

    builder.position_at_end(after)
    builder.ret_void()
    return module
