"""Docstrings say what an argument `name` is, which those of a hundred functions need not."""

import inspect

import flowbook as fb
from flowbook.graph.definition.docstrings import with_name

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
