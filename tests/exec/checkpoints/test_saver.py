"""Variables to checkpoints and back, and which checkpoints stay."""

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.checkpoints import checkpoint as checkpoints

DataLoss = fb.errors.DataLossError
NotFound = fb.errors.NotFoundError
InvalidArgument = fb.errors.InvalidArgumentError


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "disk":
        return str(tmp_path)
    return f"memory://{tmp_path.name}"


def model(width: int = 2, dtype: Any = fb.float32) -> list[fb.Variable]:
    return [
        fb.Variable(fb.ones([width], dtype), name="layer/weights"),
        fb.Variable(0, trainable=False, name="steps"),
    ]


def trained() -> fb.Session:
    weights, steps = model()
    sess = fb.Session()
    sess.run([fb.assign(weights, [3.0, 4.0]), fb.assign(steps, 7)])
    return sess


def names(folder: str) -> list[str]:
    return [
        os.path.basename(each.path) for each in checkpoints.found_in(checkpoints.folder_at(folder))
    ]


def test_what_was_saved_is_restored_in_another_graph(folder: str) -> None:
    path = fb.train.Saver().save(trained(), f"{folder}/model")
    assert path == f"{folder}/model"
    with fb.Graph().as_default(), fb.Session() as sess:
        variables = model()
        assert fb.train.Saver().restore(sess, path) == ["layer/weights", "steps"]
        weights, steps = sess.run(variables)
    assert (weights.tolist(), steps) == ([3.0, 4.0], 7)


def test_every_dtype_is_saved(folder: str) -> None:
    arrays = {t: np.arange(4).astype(t.numpy) for t in (*fb.NUMBERS, *fb.SMALL, fb.bool)}
    arrays[fb.string] = np.array([b"", b"\0", b"text", b"\xff"], object)
    variables = {t: fb.Variable(array, name=t.name) for t, array in arrays.items()}
    with fb.Session() as sess:
        path = fb.train.Saver().save(sess, f"{folder}/all")
    with fb.Session() as sess:
        sess.run([fb.assign(v, arrays[t][::-1]) for t, v in variables.items()])
        fb.train.Saver().restore(sess, path)
        for dtype, variable in variables.items():
            found = sess.run(variable)
            assert found.dtype == arrays[dtype].dtype
            assert list(map(str, found)) == list(map(str, arrays[dtype]))


def test_variables_without_a_value_are_initialised_first(folder: str) -> None:
    model()
    with fb.Session() as sess:
        path = fb.train.Saver().save(sess, f"{folder}/model")
    assert fb.train.load_variable(path, "layer/weights").tolist() == [1.0, 1.0]
    uninitialized = pytest.raises(fb.errors.FailedPreconditionError, match="uninitialized value")
    with fb.Session(auto_initialize=False) as sess, uninitialized:
        fb.train.Saver().save(sess, f"{folder}/other")
    assert not fb.train.checkpoint_exists(f"{folder}/other")


def test_what_there_is_can_be_looked_at(folder: str) -> None:
    sess = trained()
    assert fb.train.latest_checkpoint(folder) is None
    assert not fb.train.checkpoint_exists(folder)
    path = fb.train.Saver().save(sess, f"{folder}/model", global_step=3)
    assert fb.train.latest_checkpoint(folder) == path == f"{folder}/model-3"
    assert fb.train.latest_checkpoint(folder, "other") is None
    assert fb.train.checkpoint_exists(path)
    assert fb.train.checkpoint_exists(folder)
    listed = [("layer/weights", fb.float32, (2,)), ("steps", fb.int32, ())]
    assert fb.train.list_variables(path) == fb.train.list_variables(folder) == listed
    assert fb.train.load_variable(folder, "steps") == 7


def test_the_step_is_that_of_what_was_saved(folder: str) -> None:
    sess = trained()
    steps = sess.graph.get_operation_by_name("steps").variable
    weights = sess.graph.get_operation_by_name("layer/weights").variable
    assert fb.train.Saver().save(sess, f"{folder}/model", steps).endswith("model-7")
    # One that is not saved itself is as of the same moment.
    assert fb.train.Saver([weights]).save(sess, f"{folder}/part", steps.handle).endswith("part-7")
    assert [name for name, *_ in fb.train.list_variables(f"{folder}/part-7")] == ["layer/weights"]


@pytest.mark.parametrize("step", [-1, 1.5, "1", True])
def test_what_is_no_step(step: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="global_step is an int"):
        fb.train.Saver().save(trained(), tmp_path / "model", step)


# Which


def test_variables_are_chosen_and_renamed(folder: str) -> None:
    sess = trained()
    weights, steps = sess.graph.variables()
    fb.train.Saver({"old/w": weights}).save(sess, f"{folder}/model")
    assert fb.train.list_variables(f"{folder}/model") == [("old/w", fb.float32, (2,))]
    with fb.Session() as other:
        assert fb.train.Saver({"old/w": weights}).restore(other, f"{folder}/model") == [
            "layer/weights"
        ]
        assert other.run(weights).tolist() == [3.0, 4.0]
        assert other.run(steps) == 0


def test_variables_of_another_graph_are_refused(folder: str) -> None:
    sess = trained()
    saver = fb.train.Saver(sess.graph.variables())
    path = saver.save(sess, f"{folder}/model")
    with fb.Session(graph=fb.Graph()) as other:
        with pytest.raises(fb.errors.InvalidArgumentError, match="of another graph"):
            saver.save(other, f"{folder}/other")
        with pytest.raises(fb.errors.InvalidArgumentError, match="of another graph"):
            saver.restore(other, path)
    assert not fb.train.checkpoint_exists(f"{folder}/other")


def test_a_missing_variable_names_the_nearest_and_restores_nothing(folder: str) -> None:
    path = fb.train.Saver().save(trained(), f"{folder}/model")
    with fb.Graph().as_default(), fb.Session() as sess:
        steps = fb.Variable(1, name="steps")
        fb.Variable([0.0, 0.0], name="layer/weight")
        with pytest.raises(NotFound, match="no 'layer/weight'") as caught:
            fb.train.Saver().restore(sess, path)
        assert caught.value.hint == "did you mean 'layer/weights'?"
        assert sess.run(steps) == 1
        assert fb.train.Saver().restore(sess, path, partial=True) == ["steps"]
        assert sess.run(steps) == 7


@pytest.mark.parametrize(
    ("width", "dtype", "hint"), [(3, fb.float32, "var_list"), (2, fb.float64, "var_list")]
)
def test_another_shape_or_dtype_is_refused(width: int, dtype: Any, hint: str, folder: str) -> None:
    path = fb.train.Saver().save(trained(), f"{folder}/model")
    with fb.Graph().as_default(), fb.Session() as sess:
        _, steps = model(width, dtype)
        for saver in (fb.train.Saver(), fb.train.Saver(reshape=True)):
            with pytest.raises(
                InvalidArgument, match=r"'layer/weights' as float32 \[2\]"
            ) as caught:
                saver.restore(sess, path)
            assert hint in (caught.value.hint or "")
        assert sess.run(steps) == 0


def test_another_shape_of_the_same_size_if_it_is_asked_for(folder: str) -> None:
    path = fb.train.Saver().save(trained(), f"{folder}/model")
    with fb.Graph().as_default(), fb.Session() as sess:
        weights = fb.Variable([[0.0], [0.0]], name="layer/weights")
        with pytest.raises(InvalidArgument) as caught:
            fb.train.Saver().restore(sess, path)
        assert "reshape=True" in (caught.value.hint or "")
        fb.train.Saver(reshape=True).restore(sess, path)
        assert sess.run(weights).tolist() == [[3.0], [4.0]]


def test_what_is_no_list_of_variables() -> None:
    weights, _ = model()
    for wrong in (weights, "weights", 5):
        with pytest.raises(fb.errors.InvalidTypeError, match="list of variables"):
            fb.train.Saver(wrong)  # type: ignore[arg-type]
    for wrong in ([1], [weights.value], {"a": weights.handle}, {1: weights}):
        with pytest.raises(fb.errors.InvalidTypeError, match="var_list holds variables"):
            fb.train.Saver(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="two variables, or tables, of one name"):
        fb.train.Saver([weights, weights])


# What stays


def test_the_latest_stay(folder: str) -> None:
    sess = trained()
    saver, other = fb.train.Saver(max_to_keep=2), fb.train.Saver(max_to_keep=None)
    for step in range(5):
        other.save(sess, f"{folder}/other", step)
        saver.save(sess, f"{folder}/model", step)
    saver.save(sess, f"{folder}/model")
    assert {n for n in names(folder) if n.startswith("model")} == {"model-3", "model-4", "model"}
    assert len([n for n in names(folder) if n.startswith("other")]) == 5
    # Another process goes on with what is there.
    fb.train.Saver(max_to_keep=2).save(sess, f"{folder}/model", 5)
    assert fb.train.latest_checkpoint(folder) == f"{folder}/model-5"
    assert "model-3" not in names(folder)


def test_what_a_killed_process_left_goes_with_the_next(folder: str) -> None:
    """Whatever its step was: nobody will write that one again."""
    sess = trained()

    def leave(name: str, *files: str) -> None:
        left = checkpoints.folder_at(folder).within(name)
        left.create()
        for file_name in files:
            with left.written(file_name) as file:
                file.write(b"half of it")

    leave("model-3", "cpu-0.0a1b2c3d.safetensors", ".cpu-1.0a1b2c3d.safetensors.x.tmp")
    leave("model-4", "cpu-0.0a1b2c3d.safetensors", "notes.txt")
    leave("model-5", "cpu-0.0a1b2c3d.safetensors", "index.json")
    leave("model-best", "cpu-0.0a1b2c3d.safetensors")
    leave("model-6")
    leave("other-3", "cpu-0.0a1b2c3d.safetensors")
    fb.train.Saver().save(sess, f"{folder}/model", 1)
    there = checkpoints.folder_at(folder).names()
    assert there == ["model-1", "model-4", "model-5", "model-best", "other-3"]


def test_a_file_that_is_called_as_a_checkpoint_stays(tmp_path: Path) -> None:
    (tmp_path / "model-3").write_text("no folder")
    fb.train.Saver().save(trained(), tmp_path / "model", 1)
    assert (tmp_path / "model-3").read_text() == "no folder"


def test_what_another_thread_writes_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it went on in the midst of writing."""
    sess, saver = trained(), fb.train.Saver()
    write_arrays = checkpoints.write_arrays

    def interleaved(file: Any, arrays: Any) -> Any:
        monkeypatch.undo()
        digests = write_arrays(file, arrays)
        saver.save(sess, tmp_path / "model", 2)
        return digests

    monkeypatch.setattr(checkpoints, "write_arrays", interleaved)
    saver.save(sess, tmp_path / "model", 1)
    assert names(str(tmp_path)) == ["model-1", "model-2"]


def test_one_stays_of_each_so_many_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sess = trained()
    saver = fb.train.Saver(max_to_keep=1, keep_every_n_hours=2)
    for hour in range(6):
        monkeypatch.setattr("time.time", lambda hour=hour: 1e9 + 3600.0 * hour)
        saver.save(sess, tmp_path / "model", hour)
    assert names(str(tmp_path)) == ["model-0", "model-2", "model-4", "model-5"]


def test_the_best_stays(folder: str) -> None:
    sess = trained()
    for which, best in (("lowest", 1), ("highest", 0)):
        saver = fb.train.Saver(max_to_keep=1, keep_best=which)
        for step, metric in enumerate([5.0, 1.0, 3.0, math.nan]):
            saver.save(sess, f"{folder}/{which}", step, metric=metric)
        assert [n for n in names(folder) if n.startswith(which)] == [
            f"{which}-{best}",
            f"{which}-3",
        ]
        found = fb.train.best_checkpoint(folder, which, prefix=which)
        assert found == f"{folder}/{which}-{best}"
    assert fb.train.best_checkpoint(folder, "lowest", prefix="none") is None


def test_what_is_no_number_to_keep() -> None:
    for wrong in ({"max_to_keep": 0}, {"keep_every_n_hours": -1}, {"keep_best": "loss"}):
        with pytest.raises(InvalidArgument):
            fb.train.Saver(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="'lowest' or the 'highest'"):
        fb.train.best_checkpoint(".", "loss")


def test_saving_again_replaces(folder: str) -> None:
    sess = trained()
    steps = sess.graph.get_operation_by_name("steps").variable
    for _ in range(3):
        sess.run(fb.assign_add(steps, 1))
        path = fb.train.Saver().save(sess, f"{folder}/model")
    assert fb.train.load_variable(path, "steps") == 10
    assert len(checkpoints.folder_at(path).names()) == 2


# What was not written here, or is damaged


def saved(tmp_path: Path) -> Path:
    return Path(fb.train.Saver().save(trained(), tmp_path / "model"))


def change_index(path: Path, change: Any) -> None:
    index = json.loads((path / "index.json").read_text())
    change(index)
    (path / "index.json").write_text(json.dumps(index))


@pytest.mark.parametrize(
    "name",
    ["../model/cpu-0.safetensors", "/etc/passwd", "..", "", "a\\b", 5, None, "C:a"],
    ids=repr,
)
def test_no_file_outside_of_the_folder_is_opened(name: Any, tmp_path: Path) -> None:
    path = saved(tmp_path)
    change_index(path, lambda index: index["tensors"]["steps"].update(file=name))
    with pytest.raises(DataLoss, match="not the name of a file"):
        fb.train.load_variable(path, "steps")


@pytest.mark.parametrize(
    "change",
    [
        lambda index: index.pop("tensors"),
        lambda index: index.pop("state"),
        lambda index: index.update(tensors=[]),
        lambda index: index.update(time="yesterday"),
        lambda index: index["tensors"]["steps"].update(dtype="float33"),
        lambda index: index["tensors"]["steps"].update(shape=5),
        lambda index: index["tensors"]["steps"].pop("digest"),
        lambda index: index.pop("format"),
    ],
    ids=["tensors", "state", "list", "time", "dtype", "shape", "digest", "format"],
)
def test_a_damaged_index(change: Any, tmp_path: Path) -> None:
    path = saved(tmp_path)
    change_index(path, change)
    with pytest.raises(DataLoss, match="damaged"):
        fb.train.list_variables(path)
    assert fb.train.latest_checkpoint(tmp_path) is None


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda index: index.pop("tensors"), DataLoss, "damaged"),
        (lambda index: index.update(format=99), fb.errors.InvalidArgumentError, "format 99"),
    ],
    ids=["damaged", "newer"],
)
def test_what_goes_on_from_a_folder_does_not_begin_afresh_where_no_index_can_be_read(
    change: Any, error: type[Exception], said: str, tmp_path: Path
) -> None:
    path = saved(tmp_path / "run")
    others = tmp_path / "run" / "site"
    others.mkdir()
    (others / "index.json").write_text("[]")
    change_index(path, change)
    v = fb.Variable(0.0, name="v")
    with pytest.raises(error, match=said):
        fb.Session(checkpoint=tmp_path / "run").run(v)
    shutil.rmtree(path)  # What has no arrays is no checkpoint.
    with fb.Session(checkpoint=tmp_path / "run") as sess:
        assert sess.run(v) == 0.0


def test_the_latest_of_a_name_is_told_where_the_name_alone_is_asked_for(tmp_path: Path) -> None:
    v = fb.Variable(1.0, name="v")
    saver = fb.train.Saver()
    with fb.Session() as sess:
        for step in (3, 7):
            saver.save(sess, tmp_path / "model", global_step=step)
        with pytest.raises(fb.errors.NotFoundError) as caught:
            saver.restore(sess, tmp_path / "model")
        assert caught.value.hint == f"the latest of this name is {str(tmp_path / 'model-7')!r}"
        assert sess.run(v) == 1.0


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float32"},
        {"shape": [1]},
        {"digest": "0" * 32},
    ],
)
def test_an_index_that_does_not_fit_its_files(change: Any, tmp_path: Path) -> None:
    path = saved(tmp_path)
    change_index(path, lambda index: index["tensors"]["steps"].update(change))
    with pytest.raises(DataLoss, match="damaged"):
        fb.train.load_variable(path, "steps")


def test_a_damaged_file_changes_nothing(tmp_path: Path) -> None:
    path = saved(tmp_path)
    (file,) = path.glob("*.safetensors")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with fb.Graph().as_default(), fb.Session() as sess:
        weights, steps = model()
        with pytest.raises(DataLoss):
            fb.train.Saver().restore(sess, path)
        assert sess.run(steps) == 0
        assert sess.run(weights).tolist() == [1.0, 1.0]
    file.unlink()
    with pytest.raises(NotFound, match="there is no file"):
        fb.train.load_variable(path, "steps")


def test_a_later_format_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path)
    change_index(path, lambda index: index.update(format=99))
    with pytest.raises(InvalidArgument, match="has the format 99"):
        fb.train.list_variables(path)


@pytest.mark.parametrize(
    "state",
    [
        {"entropy": "x"},
        {"numerics": 5},
        {"resources": 5},
        {"resources": {"draw": {}}},
        {"resources": {"draw": {"kind": "random_state", "state": [1, 2]}}},
        {"resources": {"draw": {"kind": "random_state", "state": [0, 0, 0, 0, 0, -1]}}},
        {"resources": {"draw": {"kind": "random_state", "state": None}}},
    ],
)
def test_a_damaged_state_changes_nothing(state: Any, tmp_path: Path) -> None:
    draw = fb.random_uniform([3], seed=1, name="draw")
    path = saved(tmp_path)
    change_index(path, lambda index: index.update(state=state))
    with fb.Session() as sess, fb.Session() as untouched:
        with pytest.raises(DataLoss):
            fb.train.Saver().restore(sess, path)
        assert sess.run(draw).tolist() == untouched.run(draw).tolist()
        assert sess.run("steps") is None
        assert sess.run("steps:0") == 0


def test_a_checkpoint_with_several_files_is_one(tmp_path: Path) -> None:
    arrays = {
        "/job:localhost/task:0/device:cpu:0": {"a": np.arange(3)},
        "/job:worker/task:17/device:gpu:3": {"b": np.arange(4.0)},
    }
    checkpoints.write_checkpoint(str(tmp_path / "model"), arrays)
    files = sorted(
        path.name.partition(".")[0] for path in (tmp_path / "model").glob("*.safetensors")
    )
    assert files == ["cpu-0", "worker-17-gpu-3"]
    found = checkpoints.checkpoint_at(tmp_path).read(["a", "b"])
    assert (found["a"].tolist(), found["b"].tolist()) == ([0, 1, 2], [0.0, 1.0, 2.0, 3.0])


def test_a_checkpoint_can_be_moved(tmp_path: Path) -> None:
    path = saved(tmp_path)
    shutil.move(path, tmp_path / "elsewhere")
    assert fb.train.load_variable(tmp_path / "elsewhere", "steps") == 7


@pytest.mark.parametrize("path", ["", "/", ".", "..", "a/.."])
def test_what_is_no_name_of_a_checkpoint(path: str) -> None:
    with pytest.raises(InvalidArgument, match="name of a file"):
        fb.train.Saver().save(trained(), path)


def test_a_url_that_nothing_knows() -> None:
    with pytest.raises(fb.errors.UnimplementedError, match="cannot be opened"):
        fb.train.Saver().save(trained(), "nothing-knows://this/model")


def test_there_is_no_checkpoint(folder: str) -> None:
    model()
    with fb.Session() as sess, pytest.raises(NotFound, match="there is no checkpoint"):
        fb.train.Saver().restore(sess, f"{folder}/none")
