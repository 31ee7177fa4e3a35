"""Python's parser, where several threads use it."""

import ast

import pytest

from flowbook.graph.model.parsing import undisturbed


def test_what_another_thread_disturbs_is_done_again() -> None:
    left = [SystemError("AST constructor recursion depth mismatch (before=51, after=188)")] * 3

    def parse(text: str) -> ast.AST:
        if left:
            raise left.pop()
        return ast.parse(text)

    assert ast.unparse(undisturbed(parse, "x+1")) == "x + 1"
    assert not left


def test_what_fails_for_good_fails() -> None:
    def parse() -> None:
        raise SystemError("broken")

    with pytest.raises(SystemError, match="broken"):
        undisturbed(parse)
    with pytest.raises(SyntaxError):
        undisturbed(ast.parse, "x +")
