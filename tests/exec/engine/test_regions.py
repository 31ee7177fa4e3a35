"""Regions: what needs the same waiting, and nothing else, runs together."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from flowbook.exec.engine.regions import find_regions as regions_of
from flowbook.exec.engine.regions import places_of
from flowbook.exec.engine.units import LateFeed, Unit


class Waiting(Unit):
    """A unit that is started and reports later."""

    __slots__ = ()
    is_async = True


def unit(*, inputs=(), output=None, after=(), kind=Unit):
    return kind(tuple(inputs), () if output is None else (output,), tuple(after))


def find_regions(units, order):
    order = list(order)
    return [[order[place] for place in region] for region in regions_of(places_of(units, order))]


def test_without_waiting_there_is_one_region():
    units = [unit(output=0), unit(inputs=[0], output=1), unit(output=2, after=[1])]
    assert find_regions(units, range(3)) == [[0, 1, 2]]
    assert find_regions([], []) == []


def test_what_is_only_to_be_behind_what_waits_waits_too():
    units = [unit(output=0, kind=Waiting), unit(output=1), unit(output=2)]
    assert find_regions(units, range(3)) == [[1, 2]]
    units[2].behind = (0,)
    assert find_regions(units, range(3)) == [[1], [2]]


def test_what_waits_divides():
    units = [
        unit(output=0),
        unit(inputs=[0], output=1, kind=Waiting),
        unit(inputs=[1], output=2),
        unit(output=3),
        unit(inputs=[2, 3], output=4),
        unit(output=5, after=[1]),
    ]
    assert find_regions(units, range(6)) == [[0, 3], [2, 4, 5]]


def test_different_waits_stay_apart():
    units = [
        unit(output=0, kind=Waiting),
        unit(output=1, kind=Waiting),
        unit(inputs=[0], output=2),
        unit(inputs=[1], output=3),
        unit(inputs=[2, 3], output=4),
    ]
    assert find_regions(units, range(5)) == [[2], [3], [4]]


def test_a_late_feed_is_waited_for():
    units = [unit(inputs=[0], output=1), unit(output=2), unit(output=0, kind=LateFeed)]
    assert find_regions(units, [2, 0, 1]) == [[0], [1]]


@st.composite
def plans(draw):
    units = []
    for index in range(draw(st.integers(0, 12))):
        earlier = st.lists(st.integers(0, index - 1), max_size=3) if index else st.just([])
        kind = draw(st.sampled_from([Unit, Unit, Waiting]))
        units.append(unit(inputs=draw(earlier), output=index, after=draw(earlier), kind=kind))
    return units


@given(plans())
def test_regions_wait_for_what_each_member_needs_and_are_convex(units):
    before = [{*u.inputs, *u.after} for u in units]
    ancestors = []
    for direct in before:
        ancestors.append(direct.union(*[ancestors[d] for d in direct]))
    regions = find_regions(units, range(len(units)))
    members = list(itertools.chain(*regions))
    assert sorted(members) == [i for i, u in enumerate(units) if not u.waits]
    for region in regions:
        waits = [{a for a in ancestors[m] if units[a].waits} for m in region]
        assert all(w == waits[0] for w in waits)
        for first, last in itertools.combinations(region, 2):
            between = {i for i in ancestors[last] if first in ancestors[i]}
            assert between <= set(region)
    seen = [{a for a in ancestors[r[0]] if units[a].waits} for r in regions]
    assert all(a != b for a, b in itertools.combinations(seen, 2))
