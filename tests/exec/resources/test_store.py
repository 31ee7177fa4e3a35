"""The stores of a session: one for each device, and each resource in that of its home alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowbook as fb
from flowbook.exec.devices.cpu import Cpu
from flowbook.exec.devices.device import Device
from flowbook.exec.devices.simulated import Simulated
from flowbook.exec.resources.kinds import Definition
from flowbook.exec.resources.session_stores import SessionStores
from flowbook.graph.model.resource_key import ResourceKey
from tests.exec.held import own_keys

VARIABLE = Definition("variable", {"dtype": fb.float32, "shape": fb.Shape([2])})
KEYS = [ResourceKey("", name, 0) for name in "abc"]
VALUE = np.array([1.0, 2.0], np.float32)


def machine() -> tuple[SessionStores, list[Device]]:
    devices = [Cpu(0), Cpu(1), Simulated(0), Simulated(1)]
    return SessionStores(0, host=devices[0]), devices


def homes(stores: SessionStores) -> dict[ResourceKey, Device]:
    """Without those of named containers, which all tests share."""
    return {key: device for key, device in stores.homes.items() if not key.container}


def holders(stores: SessionStores, key: ResourceKey) -> list[Device]:
    return [store.device for store in stores._stores.values() if store.find(key) is not None]


def test_a_resource_is_made_where_it_is_first_asked_for() -> None:
    stores, (host, _, there, other) = machine()
    made = stores.on(there).of(KEYS[0], VARIABLE)
    assert made.device is there
    assert stores.find(KEYS[0]) is stores.of(KEYS[0], VARIABLE) is made
    assert homes(stores) == {KEYS[0]: there}
    with pytest.raises(fb.errors.FailedPreconditionError, match="simulated:0, and here"):
        stores.on(other).of(KEYS[0], VARIABLE)
    with pytest.raises(fb.errors.FailedPreconditionError, match="simulated:0, and here"):
        stores.on(host).of(KEYS[0], VARIABLE)


@pytest.mark.parametrize(("home", "asked"), [(0, 2), (2, 0), (2, 3), (3, 1)])
def test_what_was_placed_is_made_at_home_whoever_asks_first(home: int, asked: int) -> None:
    stores, devices = machine()
    stores.settle(KEYS[0], devices[home])
    with pytest.raises(fb.errors.FailedPreconditionError, match="and here it is wanted on"):
        stores.on(devices[asked]).of(KEYS[0], VARIABLE)
    assert holders(stores, KEYS[0]) == [devices[home]]
    assert homes(stores) == {KEYS[0]: devices[home]}


def test_what_nobody_has_placed_may_still_go_anywhere() -> None:
    stores, (host, *_, there) = machine()
    made = stores.of(KEYS[0], VARIABLE)
    assert (made.device, homes(stores)) == (host, {})
    made.assign(VALUE)
    stores.settle(KEYS[0], there)
    assert (holders(stores, KEYS[0]), made.device) == ([there], there)
    np.testing.assert_array_equal(made.fetch(), VALUE)


def test_cpus_use_what_lives_on_another_one() -> None:
    stores, (host, beside, *_) = machine()
    made = stores.on(beside).of(KEYS[0], VARIABLE)
    assert stores.on(host).of(KEYS[0], VARIABLE) is made
    assert holders(stores, KEYS[0]) == [beside]


def test_what_does_not_fit_stays_where_it_was() -> None:
    stores, _ = machine()
    full = Simulated(2, memory_limit=4)
    made = stores.of(KEYS[0], VARIABLE)
    made.assign(VALUE)
    with pytest.raises(fb.errors.ResourceExhaustedError):
        stores.settle(KEYS[0], full)
    assert homes(stores) == {}
    assert stores.find(KEYS[0]) is made
    np.testing.assert_array_equal(made.read(), VALUE)


def test_what_moves_while_it_is_given_a_value_gets_it_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores, (host, *_, there) = machine()
    made = stores.of(KEYS[0], VARIABLE)
    made.assign(VALUE)

    def put(value: Any) -> Any:
        stores.settle(KEYS[0], there)
        return value

    monkeypatch.setattr(host, "put", put)
    made.put(VALUE + 1)
    np.testing.assert_array_equal(made.fetch(), VALUE + 1)
    assert made.device is there


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["of", "on", "settle", "release", "find"]),
        st.sampled_from(KEYS),
        st.integers(0, 3),
    ),
    max_size=20,
)


@given(STEPS)
def test_each_resource_is_in_one_store_whatever_is_asked(steps: Any) -> None:
    stores, devices = machine()
    placed: dict[ResourceKey, int] = {}
    alive: dict[ResourceKey, Any] = {}
    for what, key, number in steps:
        if what == "settle":
            stores.settle(key, devices[number])
            placed[key] = number
        elif what == "release":
            stores.release(key)
            placed.pop(key, None)
            alive.pop(key, None)
        elif what == "find":
            assert stores.find(key) is alive.get(key)
        elif what == "of":
            found = stores.of(key, VARIABLE)
            assert alive.setdefault(key, found) is found
        else:
            home = placed.get(key, 0 if key in alive else number)
            if max(home, number) > 1 and home != number:
                with pytest.raises(fb.errors.FailedPreconditionError):
                    stores.on(devices[number]).of(key, VARIABLE)
                # It is made all the same, where it belongs.
                alive.setdefault(key, stores.find(key))
            else:
                found = stores.on(devices[number]).of(key, VARIABLE)
                assert alive.setdefault(key, found) is found
                if home:
                    placed[key] = home
        assert homes(stores) == {k: devices[n] for k, n in placed.items()}
        for each in KEYS:
            there = [devices[placed.get(each, 0)]] if each in alive else []
            assert holders(stores, each) == there
            assert [alive[each].device] == there if there else each not in alive
    each = list(stores._stores.values())
    stores.close()
    assert [k for store in each for k, _ in store.held()] == []
    with pytest.raises(fb.errors.CancelledError):
        stores.of(KEYS[0], VARIABLE)


def test_variables_lie_in_the_stores_of_the_devices_where_they_were_placed() -> None:
    devices = ["cpu:0", "cpu:1", "simulated:0"]
    variables = {}
    for device in devices:
        with fb.device(device):
            variables[device] = fb.Variable(VALUE, name=f"on_{device[:-2]}_{device[-1]}")
    with fb.Session(devices=devices) as sess:
        sess.run(list(variables.values()))
        stores = sess._master.stores
        for device, variable in variables.items():
            (there,) = holders(stores, variable.op.key)
            assert there.name.endswith(device)
            sizes = stores.sizes_on(there.name)
            own = {key: size for key, size in sizes.items() if not key.container}
            assert own == {variable.op.key: VALUE.nbytes}
        assert len(own_keys(sess)) == 3
