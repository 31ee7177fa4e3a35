"""NVIDIA's run-time compiler, which needs no GPU: what tells whether sources compile."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import metadata

DISTRIBUTION = "nvidia-cuda-nvrtc-cu12"


@cache
def _library() -> ctypes.CDLL:
    files = metadata.files(DISTRIBUTION) or []
    (path,) = [file.locate() for file in files if file.name.startswith("libnvrtc.so")]
    return ctypes.CDLL(str(path))


def compiled(source: str, options: tuple[str, ...]) -> bytes:
    """What a source in CUDA C becomes: machine code of the architecture that the options name.

    Raises:
        ValueError: if it does not compile, with what the compiler says.
    """
    nvrtc, program = _library(), ctypes.c_void_p()
    made = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), b"source.cu", 0, None, None
    )
    assert made == 0
    words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    failed = nvrtc.nvrtcCompileProgram(program, len(options), words)
    what = "ProgramLog" if failed else "CUBIN"
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    found = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, found)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise ValueError(found.value.decode())
    return found.raw
