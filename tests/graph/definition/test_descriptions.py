"""Docstrings of a family: what relatives say of arguments is said of all that take them."""

import inspect

import flowbook as fb
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.descriptions import arguments_as, with_name


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


# What a name is

LISTED = """Do something.

    Args:
        x: a tensor,
            of any dtype.

    Returns:
        Another.
    """


def test_a_name_comes_after_the_arguments_that_are_listed() -> None:
    told = with_name(LISTED, "that of the result.")
    assert told is not None
    assert told.splitlines()[2:8] == [
        "    Args:",
        "        x: a tensor,",
        "            of any dtype.",
        "        name: that of the result.",
        "",
        "    Returns:",
    ]


def test_arguments_may_end_the_text() -> None:
    told = with_name("Do.\n\nArgs:\n    x: a tensor.\n", "its own.")
    assert told == "Do.\n\nArgs:\n    x: a tensor.\n    name: its own.\n"


def test_what_lists_none_or_says_it_itself_stays() -> None:
    said = LISTED.replace("x: a tensor", "name: what it is called")
    assert with_name(said, "its own.") == said
    assert with_name("Do. Arguments as for `this`.", "its own.") == "Do. Arguments as for `this`."
    assert with_name(None, "its own.") is None


def test_public_functions_say_it_in_the_words_of_what_they_build() -> None:
    assert "\n    name: the operation's name.\n" in (inspect.getdoc(fb.concat) or "")
    scoped = inspect.getdoc(fb.nn.batch_normalization) or ""
    assert '\n    name: the name scope; by default "batchnorm".\n' in scoped
    assert "\n    name: the operation's name.\n" in (inspect.getdoc(fb.check_numerics) or "")
