"""One meaning, however it is run: the reference, generated code in all its forms, the oracle.

Graphs are random: aliasing operations, several outputs, control dependencies, variables, random
numbers, functions, asynchronous operations, feeds of any tensor, fetches of anything.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

import flowbook as fb
from flowbook.exec.engine import segment
from flowbook.exec.plan.failure import deadline_after
from flowbook.exec.resources.random_state import RandomState
from flowbook.graph.building.verify import check
from tests.exec.random_graphs import channel, examples
from tests.exec.state.executors import runner_of
from tests.interpreter import Interpreter, plain_resource

LATER = 100.0


def reference(runner, feeds):
    return runner.run_reference(feeds)


def timed_reference(runner, feeds):
    return runner.run_reference(feeds, deadline_after(LATER))


def checked(runner, feeds):
    return runner.run_checked(feeds)


def timed_checked(runner, feeds):
    return runner.run_checked(feeds, deadline_after(LATER))


def regions(runner, feeds):
    return runner.run_regions(feeds)


def timed_regions(runner, feeds):
    return runner.run_regions(feeds, deadline_after(LATER))


def whole(runner, feeds):
    runner.write()
    return runner.run(feeds)


def timed_whole(runner, feeds):
    runner.write()
    return runner.run(feeds, deadline_after(LATER))


def split_whole(runner, feeds):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "LONGEST", 2)
        return whole(runner, feeds)


def split_timed(runner, feeds):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "LONGEST", 3)
        return timed_whole(runner, feeds)


def split_regions(runner, feeds):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "LONGEST", 2)
        return regions(runner, feeds)


EXECUTORS = [
    reference,
    timed_reference,
    checked,
    timed_checked,
    regions,
    timed_regions,
    whole,
    timed_whole,
    split_whole,
    split_timed,
    split_regions,
]


def steps_by(run, example):
    """The values of all steps, and of all variables at the end, of a session of its own."""
    found = []
    with fb.Session(example.graph) as sess:
        for fetches, feeds in example.steps:
            channel.clear()
            _, runner = runner_of(sess, [*fetches, *example.sends], feeds)
            values = run(runner, list(feeds.values()))
            found.append([np.copy(v) for v in values])
            assert_separate([*values, *feeds.values()])
            spoil(values)
        found.append(sess.run(example.graph.variables()))
    return found


def assert_separate(values):
    arrays = [v for v in values if isinstance(v, np.ndarray)]
    for one, other in itertools.combinations(arrays, 2):
        assert not np.shares_memory(one, other)


def spoil(values):
    """Write into what was fetched: it is the caller's own."""
    for value in values:
        if isinstance(value, np.ndarray):
            value[...] = np.nan


def assert_same(found, expected):
    assert len(found) == len(expected)
    for step, wanted in zip(found, expected, strict=True):
        for value, other in zip(step, wanted, strict=True):
            assert value.dtype == other.dtype
            assert value.shape == other.shape
            assert value.tobytes() == other.tobytes()


@settings(max_examples=150)
@given(examples(feed_variables=True))
def test_executors_agree(example):
    check(example.graph)
    expected = steps_by(reference, example)
    for run in EXECUTORS[1:]:
        assert_same(steps_by(run, example), expected)


@settings(max_examples=150)
@given(examples(with_waiting=True, feed_variables=True))
def test_what_the_reference_finishes_regions_finish(example):
    check(example.graph)
    expected = steps_by(reference, example)
    for run in (timed_reference, checked, timed_checked, regions, timed_regions, split_regions):
        assert_same(steps_by(run, example), expected)


@settings(max_examples=100)
@given(examples(with_waiting=True, feed_variables=True, depth=2))
def test_branches_and_loops_in_which_something_waits(example):
    check(example.graph)
    expected = steps_by(reference, example)
    for run in (checked, timed_regions, split_regions):
        assert_same(steps_by(run, example), expected)


@settings(max_examples=100)
@given(examples(with_waiting=True, feed_variables=True))
def test_sessions_agree_with_the_reference_however_often_they_run(example):
    """Each step four times over; variables go on from where they are."""
    example.steps = [step for step in example.steps for _ in range(4)]
    expected = steps_by(reference, example)
    found = []
    with fb.Session(example.graph) as sess:
        for fetches, feeds in example.steps:
            channel.clear()
            values = sess.run([*fetches, *example.sends], feeds)
            found.append([np.copy(v) for v in values if v is not None])
            spoil(values)
        found.append(sess.run(example.graph.variables()))
    assert_same(found, expected)


@settings(max_examples=100)
@given(examples(with_waiting=True))
def test_partial_runs_agree(example):
    """The feeds arrive one by one, each spoilt as soon as it was given."""
    expected = steps_by(reference, example)
    found = []
    with fb.Session(example.graph) as sess:
        for fetches, feeds in example.steps:
            channel.clear()
            everything = list(dict.fromkeys([*fetches, *example.sends]))
            step = sess.partial_run(everything, list(feeds))
            if not example.waits:
                for tensor, value in feeds.items():
                    given_value = value.copy()
                    step.run([], {tensor: given_value})
                    given_value[...] = np.nan
                feeds = {}
            values = dict(zip(everything, step.run(everything, feeds), strict=True))
            found.append([np.copy(values[f]) for f in fetches if values[f] is not None])
            spoil(values.values())
        found.append(sess.run(example.graph.variables()))
    assert_same(found, expected)


def resource_of(operation):
    """Variables in the plainest way; random numbers as they are, to compare with."""
    if operation.op_def.owns == "random_state":
        attributes = operation.attributes
        return RandomState(operation.name, attributes["graph_seed"], attributes["seed"], 0)
    return plain_resource(operation)


@settings(max_examples=150)
@given(examples(with_waiting=False))
def test_the_oracle_agrees(example):
    expected = []
    oracle = Interpreter(resource_of)
    for fetches, feeds in example.steps:
        values = oracle.run(fetches, feeds)
        expected.append([np.asarray(v) for v in values if v is not None])
    expected.append(oracle.run([v.value for v in example.graph.variables()]))
    found = steps_by(reference, example)
    for step, wanted in zip(found, expected, strict=True):
        for value, other in zip(step, wanted, strict=True):
            np.testing.assert_array_equal(value, other)
