"""What Tab and Shift-Tab show of flowbook."""

from typing import Any

import pytest
from IPython.core import completer
from IPython.core.completer import provisionalcompleter

import flowbook as fb
from flowbook import _help


@pytest.fixture
def shell(notebook: Any) -> Any:
    _help.install(notebook.shell)
    notebook.run("a", "x = fb.placeholder(fb.float32, [2], name='x')\nsess = fb.Session()")
    return notebook.shell


def completed(shell: Any, written: str) -> dict[str, str]:
    with provisionalcompleter():
        found = shell.Completer.completions(written, len(written))
        return {each.text: each.type for each in found}


@pytest.mark.parametrize("path", ["fb", "fb.nn", "fb.train", "fb.errors", "fb.summary"])
def test_only_public_names_are_completed_and_of_each_the_kind_is_known(
    shell: Any, path: str
) -> None:
    found = completed(shell, f"y = {path}.")
    module = eval(path, {"fb": fb})
    assert set(found) == set(dir(module))
    assert set(found.values()) <= {"class", "function", "instance", "module"}


def test_all_names_are_completed_however_many_they_are(
    notebook: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completer, "MATCHES_LIMIT", 100)
    _help.install(notebook.shell)
    assert list(completed(notebook.shell, "fb.")) == dir(fb)
    # One that is higher stays.
    monkeypatch.setattr(completer, "MATCHES_LIMIT", 100_000)
    _help.install(notebook.shell)
    assert completer.MATCHES_LIMIT == 100_000


def test_a_beginning_is_completed(shell: Any) -> None:
    assert completed(shell, "print(fb.reduce_su") == {"reduce_sum": "function"}
    assert completed(shell, "fb.Sess") == {"Session": "class"}
    assert completed(shell, "fb.los") == {"losses": "module"}
    # Of everything else IPython knows more.
    assert "consumers" in completed(shell, "x.cons")
    assert "fb" in completed(shell, "f")


def test_signatures_are_as_they_are_written(shell: Any) -> None:
    shown = shell.object_inspect("fb.matmul")["definition"]
    assert "transpose_a: bool = False" in shown
    assert shown.endswith("-> Tensor")
    shown = shell.object_inspect("sess.run")["definition"]
    assert "timeout: float | None = None" in shown
    assert "misspelt" not in shown
    shown = shell.object_inspect("fb.Session")["init_definition"]
    assert "soft_placement: bool = False" in shown
    for name in ("fb.matmul", "fb.layers.dense", "sess.run", "sess.summarize"):
        shown = shell.object_inspect(name)["definition"]
        assert "'" not in shown
        assert ": Any" not in shown


@pytest.mark.parametrize("use_jedi", [False, True])
def test_keywords_of_classes_are_completed(shell: Any, use_jedi: bool) -> None:
    shell.Completer.use_jedi = use_jedi
    for written, keyword in [
        ("fb.Session(auto", "auto_initialize="),
        ("fb.Session(cpus=2, dev", "devices="),
        ("fb.OpDef('Cube', 'x: T -> y: T', ker", "kernel="),
        ("fb.Variable(0.0, train", "trainable="),
    ]:
        assert completed(shell, written)[keyword] == "param"


def test_installing_twice_changes_nothing(shell: Any) -> None:
    before = list(shell.Completer.custom_matchers)
    _help.install(shell)
    assert shell.Completer.custom_matchers == before
