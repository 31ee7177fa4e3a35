"""Docstrings of a family: what relatives say of arguments is said of all that take them."""

import inspect

import flowbook as fb
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.descriptions import arguments_as


def narrow(x: int, width: int = 1, name: str | None = None) -> None:
    """Do one thing.

    Args:
        x: a number,
            of two lines.
        width: how wide.
        name: the name.
    """


def test_what_is_left_out_is_described_in_the_order_of_the_signature() -> None:
    @arguments_as(narrow)
    def wide(depth: int, x: int, width: int, unsaid: int, name: str | None = None) -> None:
        """Do another.

        Args:
            width: how wide and deep.
            name: its own name.
            depth: how deep.

        Raises:
            ValueError: never.
        """

    assert inspect.getdoc(wide) == (
        "Do another.\n\nArgs:\n    depth: how deep.\n    x: a number,\n        of two lines.\n"
        "    width: how wide and deep.\n    name: its own name.\n\nRaises:\n    ValueError: never."
    )


def test_arguments_stand_before_results_and_examples() -> None:
    @arguments_as(narrow)
    def found(x: int) -> int:
        """Find.

        More of it.

        Returns:
            Something.

        >>> found(1)
        """
        return x

    @arguments_as(found, narrow)
    class Found:
        """Found."""

        def __init__(self, name: str, x: int) -> None: ...

    said = "Args:\n    x: a number,\n        of two lines."
    assert inspect.getdoc(found) == (
        f"Find.\n\nMore of it.\n\n{said}\n\nReturns:\n    Something.\n\n>>> found(1)"
    )
    assert inspect.getdoc(Found) == f"Found.\n\n{said}"


def test_without_docstrings_there_is_nothing_to_complete() -> None:
    def silent(x: int) -> int:
        return x

    assert arguments_as(narrow)(silent) is silent
    assert silent.__doc__ is None


def test_what_the_name_is_no_relative_says() -> None:
    @composed
    @arguments_as(narrow)
    def other(x: int, name: str | None = None) -> None:
        """Do another."""

    assert inspect.getdoc(other) == (
        "Do another.\n\nArgs:\n    x: a number,\n        of two lines.\n"
        '    name: the name scope; by default "other".'
    )


def test_families_of_train_describe_each_argument() -> None:
    for function in (fb.train.maybe_shuffle_batch_join, fb.train.AdamWOptimizer, fb.layers.conv1d):
        text = inspect.getdoc(function)
        assert text is not None
        for name in inspect.signature(function).parameters:
            assert f"\n    {name}: " in text
