"""The front end's code, run in this process: what draws graphs in pages draws their pictures here.

QuickJS runs it, which has JavaScript and nothing else: no files, no network, nothing of this
process. Text goes in, text comes out. Each call has an engine of its own, which is there in some
milliseconds: nothing of one is left for the next, whatever thread it comes from.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from flowbook.graph.model.errors import FailedPreconditionError, InternalError

BUNDLE = Path(__file__).parent / "static" / "picture.js"

_MEMORY = 1 << 30  # Bytes.
_SECONDS = 60.0  # Of the process, which may have other threads.
# Layouts are recursive, and a thread's stack is small on some systems.
_STACK = 1 << 24
_STACK_OF_CODE = _STACK // 2


def call(function: str, *arguments: str) -> str:
    """Call a function of the bundle, and return what it returns.

    Raises:
        FailedPreconditionError: if there is no engine here, or the front end has not been built.
        InternalError: if the function fails, or takes too much time or memory.
    """
    if not BUNDLE.exists():
        raise FailedPreconditionError(
            "the front end has not been built", hint="run `make front-end` in Flowbook's source"
        )
    code = BUNDLE.read_text(encoding="utf-8")
    with ThreadPoolExecutor(1) as pool:
        before = threading.stack_size(_STACK)
        try:
            answer = pool.submit(_run, code, function, arguments)
        finally:
            threading.stack_size(before)
        return answer.result()


def _run(code: str, function: str, arguments: tuple[str, ...]) -> str:
    try:
        import quickjs
    except ImportError:
        raise FailedPreconditionError(
            "pictures of graphs need the package quickjs-ng", hint="pip install quickjs-ng"
        ) from None
    context = quickjs.Context()
    context.set_memory_limit(_MEMORY)
    context.set_time_limit(_SECONDS)
    context.set_max_stack_size(_STACK_OF_CODE)
    try:
        context.eval(code)
        return str(context.eval(f"flowbook.{function}")(*arguments))
    except quickjs.JSException as error:
        raise InternalError(f"the front end's {function} failed: {error}") from None
