"""How good placements of models are: an Inception-like network and eight LSTM layers."""

from __future__ import annotations

import pytest

import flowbook as fb
from flowbook.exec.devices.imagined import Imagined
from flowbook.exec.devices.local_devices import imagined_devices
from flowbook.exec.placement.assignment import Problem, assign, finish_of
from flowbook.exec.placement.place import place
from flowbook.exec.placement.search import Search
from flowbook.exec.placement.simulation import order_of, ranks
from flowbook.graph.rewrite.prune import prune

GPUS = ["gpu:0", "gpu:1", "gpu:2"]
CPUS = ["cpu:0", "cpu:1", "cpu:2"]


def inception(modules: int = 4) -> list[fb.Operation]:
    """Modules of four branches of different lengths, one after the other, and their training."""
    h = x = fb.placeholder(fb.float32, [32, 14, 14, 192], name="x")

    def convolved(x: fb.Tensor, channels: int, size: int) -> fb.Tensor:
        return fb.layers.conv2d(x, channels, size, padding="SAME", activation=fb.nn.relu)

    for _ in range(modules):
        branches = [
            convolved(h, 64, 1),
            convolved(convolved(h, 96, 1), 128, 3),
            convolved(convolved(h, 16, 1), 32, 5),
            convolved(fb.nn.max_pool(h, 3, 1, "SAME"), 32, 1),
        ]
        h = fb.concat(branches, 3)
    return trained(fb.reduce_mean(h), x)


def lstm(layers: int = 8) -> list[fb.Operation]:
    """Layers above one another, unrolled over some steps, and their training."""
    h = x = fb.placeholder(fb.float32, [64, 6, 256], name="x")
    for layer in range(layers):
        h, _ = fb.layers.lstm(h, 256, name=f"lstm{layer}")
    return trained(fb.reduce_mean(fb.square(h)), x)


def trained(loss: fb.Tensor, x: fb.Tensor) -> list[fb.Operation]:
    return [fb.train.GradientDescentOptimizer(0.1).minimize(loss), x.op]


def problem_of(make: object, names: list[str]) -> Problem:
    """What the placement of a model's training step is decided by."""
    step, x = make()  # type: ignore[operator]
    seen: list[Problem] = []

    def noting(problem: Problem) -> object:
        seen.append(problem)
        return assign(problem)

    graph = prune([], [step], [x.outputs[0]])
    devices = imagined_devices(names)
    assert all(isinstance(device, Imagined) for device in devices[: len(names)])
    place(graph, devices, assigning=noting)  # type: ignore[arg-type]
    [problem] = seen
    return problem


def heft(problem: Problem) -> float:
    """Heterogeneous earliest finish time, with insertion (Topcuoglu, Hariri, Wu, 2002).

    By upward rank each job goes where it ends first, into the first gap that fits. What has to be
    together goes where the first of it went.
    """
    jobs, count = problem.jobs, len(problem.alike)
    busy: list[list[tuple[float, float]]] = [[] for _ in range(count)]
    ends, placed = [0.0] * len(jobs), [-1] * len(jobs)
    where = {n: each[0] for n, each in enumerate(problem.feasible) if len(each) == 1}
    for index in order_of(jobs, ranks(jobs, problem.transfer)):
        job, group = jobs[index], problem.group_of[index]
        found = []
        for device in [where[group]] if group in where else problem.feasible[group]:
            begin = 0.0
            for maker, size in [*[(m, s) for m, _, s in job.taken], *[(m, 0) for m in job.waited]]:
                source = placed[maker] if maker >= 0 else -1
                crossing = 0.0 if source == device else problem.transfer(size, source, device)
                begin = max(begin, (ends[maker] if maker >= 0 else 0.0) + crossing)
            length = job.seconds[device]
            for start, stop in busy[device]:
                if begin + length <= start:
                    break
                begin = max(begin, stop)
            found.append((begin + length, begin, device))
        end, begin, device = min(found)
        where[group] = device
        if end > begin:
            busy[device] = sorted([*busy[device], (begin, end)])
        ends[index], placed[index] = end, device
    return max(ends)


@pytest.mark.parametrize("names", [GPUS, CPUS], ids=["gpus", "cpus"])
@pytest.mark.parametrize("make", [inception, lstm])
def test_it_beats_what_others_do(make: object, names: list[str]) -> None:
    problem = problem_of(make, names)
    found = assign(problem).end
    order = order_of(problem.jobs, ranks(problem.jobs, problem.transfer))
    in_turn = [each[n % len(each)] for n, each in enumerate(problem.feasible)]
    assert found < 0.9 * finish_of(problem, order, in_turn)
    for device in range(len(problem.alike)):
        alone = [device if device in each else each[0] for each in problem.feasible]
        assert found < finish_of(problem, order, alone)
    # Nothing is earlier than the longest way from the beginning to the end.
    fastest = [job._replace(seconds=(min(job.seconds),)) for job in problem.jobs]
    longest = max(ranks(fastest, lambda *_: 0.0))
    assert found < 0.995 * heft(problem) or found < 1.0001 * longest


def test_a_search_beats_list_scheduling_where_transfers_count() -> None:
    problem = problem_of(inception, GPUS)
    assert assign(problem).end < 0.99 * heft(problem)
    assert Search(None, 300)(problem).end < 0.95 * heft(problem)
