"""Branches of which there are more than two, held against Python's own."""

from __future__ import annotations

import pytest

import flowbook as fb


def refused(build, kind, text):
    with pytest.raises(kind, match=text):
        build()


class TestCase:
    def test_the_first_true_predicate_counts(self):
        x = fb.placeholder(fb.float32, [])
        y = fb.case(
            [(x < 0, lambda: x * 10), (x < 5, lambda: x + 100), (x < 9, lambda: x)],
            default=lambda: -x,
        )
        with fb.Session() as sess:
            found = [float(sess.run(y, {x: v})) for v in (-1, 3, 7, 20)]
        assert found == [-10, 103, 7, -20]

    def test_only_one_branch_acts(self):
        n = fb.placeholder(fb.int32, [])
        counts = [fb.Variable(0) for _ in range(3)]

        def branch(i):
            fb.assign_add(counts[i], 1)
            return fb.constant(i)

        y = fb.case([(n < 0, lambda: branch(0)), (n < 5, lambda: branch(1))], lambda: branch(2))
        with fb.Session() as sess:
            for value in (-3, 1, 2, 8, 9, 10):
                sess.run(y, {n: value})
            assert sess.run(counts) == [1, 2, 3]

    def test_a_dict_goes_in_its_order(self):
        x = fb.placeholder(fb.float32, [])
        y = fb.case({x > 0: lambda: "positive", x > -5: lambda: "near"}, lambda: "far")
        with fb.Session() as sess:
            assert [sess.run(y, {x: v}) for v in (1, -1, -9)] == [b"positive", b"near", b"far"]

    def test_structures_and_operations(self):
        x = fb.placeholder(fb.float32, [])
        y = fb.case(
            [(x < 0, lambda: {"a": x, "b": (x, 1)}), (x < 5, lambda: {"a": -x, "b": (2 * x, 2)})],
            lambda: {"a": x * x, "b": (x, 3)},
        )
        counter = fb.Variable(0)
        act = fb.case([(x < 0, lambda: fb.assign(counter, 5).op)], lambda: None)
        with fb.Session() as sess:
            assert sess.run(y, {x: 3.0}) == {"a": -3, "b": (6, 2)}
            assert sess.run(y, {x: 6.0}) == {"a": 36, "b": (6, 3)}
            sess.run(act, {x: 1.0})
            assert sess.run(counter) == 0
            sess.run(act, {x: -1.0})
            assert sess.run(counter) == 5

    @pytest.mark.parametrize("exclusive", [False, True])
    def test_without_a_pair_there_is_the_default(self, exclusive):
        x = fb.placeholder(fb.float32, [])
        for pairs in ([], {}):
            y = fb.case(pairs, lambda: x * 2, exclusive=exclusive)
            with fb.Session() as sess:
                assert sess.run(y, {x: 3.0}) == 6

    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_without_a_default_one_has_to_be_true(self, count):
        x = fb.placeholder(fb.float32, [], name="x")
        y = fb.case([(x < i, lambda i=i: x * i) for i in range(1, count + 1)])
        with fb.Session() as sess:
            for value in range(count):
                assert sess.run(y, {x: value}) == value * (value + 1)
            with pytest.raises(fb.errors.InvalidArgumentError, match=r"no default: Less:0"):
                sess.run(y, {x: 10.0})

    def test_one_branch_alone_waits_for_its_predicate(self):
        x = fb.placeholder(fb.float32, [])
        counter = fb.Variable(0)
        same = fb.case([(x < 0, lambda: x)])
        act = fb.case([(x < 0, lambda: fb.assign_add(counter, 1).op)])
        nothing = fb.case([(x < 0, lambda: None)])
        with fb.Session() as sess:
            assert sess.run([same, act, nothing], {x: -1.0})[0] == -1
            assert sess.run(counter) == 1
            for fetch in (same, act, nothing):
                with pytest.raises(fb.errors.InvalidArgumentError, match="no predicate is true"):
                    sess.run(fetch, {x: 1.0})
            assert sess.run(counter) == 1

    def test_exclusive_predicates_say_which_are_true(self):
        x = fb.placeholder(fb.float32, [])
        predicates = [fb.less(x, 0, name="a"), fb.less(x, 5, name="b"), fb.greater(x, 3, name="c")]
        pairs = [(p, lambda i=i: fb.constant(i)) for i, p in enumerate(predicates)]
        first = fb.case(pairs, lambda: -1)
        only = fb.case(pairs, lambda: -1, exclusive=True)
        with fb.Session() as sess:
            assert [sess.run(first, {x: v}) for v in (-1, 1, 4, 9)] == [0, 1, 1, 2]
            assert [sess.run(only, {x: v}) for v in (1, 9)] == [1, 2]
            with pytest.raises(fb.errors.InvalidArgumentError, match=r'these are: ."a:0" "b:0"'):
                sess.run(only, {x: -1.0})
            with pytest.raises(fb.errors.InvalidArgumentError, match=r'these are: ."b:0" "c:0"'):
                sess.run(only, {x: 4.0})

    def test_in_a_loop(self):
        def body(i, total):
            step = fb.case(
                [(fb.equal(i % 3, 0), lambda: i), (fb.equal(i % 3, 1), lambda: 10 * i)],
                lambda: fb.constant(1000),
            )
            return i + 1, total + step

        _, total = fb.while_loop(lambda i, t: i < 9, body, (0, 0))
        with fb.Session() as sess:
            assert sess.run(total) == (0 + 3 + 6) + 10 * (1 + 4 + 7) + 3 * 1000

    def test_loops_that_touch_what_is_theirs_are_in_any_branch(self):
        x = fb.placeholder(fb.float32, [3])
        total = fb.reduce_sum(x)
        y = fb.case(
            [
                (total < 0, lambda: fb.map_fn(lambda t: t * t, x) * 2),
                (total < 9, lambda: fb.scan(lambda a, t: a + t, x) * 3),
            ],
            lambda: fb.foldl(lambda a, t: a + t, x, initializer=x) * 4,
        )
        dy = fb.gradients(y, x)[0]
        cases = [
            ([-1.0, -2.0, 1.0], [2.0, 8.0, 2.0], [-4.0, -8.0, 4.0]),
            ([1.0, 2.0, 3.0], [3.0, 9.0, 18.0], [9.0, 6.0, 3.0]),
            ([4.0, 5.0, 6.0], [76.0, 80.0, 84.0], [16.0, 16.0, 16.0]),
        ]
        with fb.Session() as sess:
            for at, value, slope in cases * 2:
                found = sess.run([y, dy], {x: at})
                assert [array.tolist() for array in found] == [value, slope]

    def test_what_cannot_be_is_refused(self):
        x = fb.placeholder(fb.float32, [])
        wrong_type, wrong = fb.errors.InvalidTypeError, fb.errors.InvalidArgumentError
        is_low = x < 0
        refused(lambda: fb.case([]), wrong, "there is no pair")
        refused(lambda: fb.case(x), wrong_type, "a list of pairs")
        refused(lambda: fb.case([is_low]), wrong_type, r"pred_fn_pairs\[0\] is no pair")
        refused(
            lambda: fb.case([(is_low, x)]), wrong_type, r"pred_fn_pairs\[0\]\[1\] is a function"
        )
        refused(lambda: fb.case([(is_low, lambda: x)], x), wrong_type, "default is a function")
        refused(lambda: fb.case([(x, lambda: x)]), wrong_type, "the predicate is float32")
        row = fb.placeholder(fb.bool, [2], name="row")
        refused(lambda: fb.case([(row, lambda: x)]), wrong, "predicate 0, 'row:0', is no scalar")
        refused(
            lambda: fb.case([(is_low, lambda: x), (is_low, lambda: (x, x))], lambda: x),
            wrong_type,
            "branch 1 gives a tuple of 2, but branch 2 the tensor",
        )
        refused(
            lambda: fb.case([(is_low, lambda: x), (is_low, lambda: 1)], lambda: 2),
            wrong_type,
            "branch 0 gives float32, but branch 1 and those after it int32",
        )

    def test_a_constant_predicate_warns(self):
        x = fb.placeholder(fb.float32, [])
        with pytest.warns(fb.errors.ConstantConditionWarning, match="case: .* True") as told:
            y = fb.case([(x < 0, lambda: x), (True, lambda: -x)], lambda: x * 100)
        assert told[0].filename == __file__
        with fb.Session() as sess:
            assert sess.run(y, {x: 2.0}) == -2


class TestSwitchCase:
    @pytest.mark.parametrize("count", range(1, 8))
    def test_each_number_has_its_branch(self, count):
        n = fb.placeholder(fb.int32, [])
        functions = [lambda i=i: fb.constant(i * 10) + n for i in range(count)]
        last = fb.switch_case(n, functions)
        other = fb.switch_case(n, functions, default=lambda: -1)
        with fb.Session() as sess:
            for value in range(-2, count + 2):
                inside = 0 <= value < count
                expected = (value if inside else count - 1) * 10 + value
                assert sess.run(last, {n: value}) == expected
                assert sess.run(other, {n: value}) == (expected if inside else -1)

    def test_numbers_may_be_any(self):
        n = fb.placeholder(fb.int64, [])
        by_dict = fb.switch_case(n, {7: lambda: "seven", -3: lambda: "minus three"})
        by_pairs = fb.switch_case(n, [(7, lambda: 1), (2**40, lambda: 2)], default=lambda: 3)
        with fb.Session() as sess:
            found = [sess.run(by_dict, {n: v}) for v in (7, -3, 0)]
            assert found == [b"seven", b"minus three", b"seven"]
            assert [sess.run(by_pairs, {n: v}) for v in (7, 2**40, 0)] == [1, 2, 3]

    def test_each_branch_is_built_once(self):
        built = []
        n = fb.placeholder(fb.int32, [])

        def branch(i):
            built.append(i)
            return fb.constant(i)

        fb.switch_case(n, {i * 5: lambda i=i: branch(i) for i in range(6)}, lambda: branch(6))
        assert sorted(built) == list(range(7))

    def test_what_cannot_be_is_refused(self):
        n = fb.placeholder(fb.int32, [])
        x = fb.placeholder(fb.float32, [])
        wrong_type, wrong = fb.errors.InvalidTypeError, fb.errors.InvalidArgumentError
        refused(lambda: fb.switch_case(n, []), wrong, "there is no branch")
        refused(lambda: fb.switch_case(n, x), wrong_type, "a list of functions")
        refused(lambda: fb.switch_case(n, [x]), wrong_type, "a branch is a function")
        refused(lambda: fb.switch_case(n, {1.5: lambda: x}), wrong_type, "a branch is an int")
        refused(lambda: fb.switch_case(n, {1: x}), wrong_type, "branch 1 is a function")
        refused(
            lambda: fb.switch_case(n, [(1, lambda: x), (1, lambda: x)]), wrong, "two branches 1"
        )
        refused(lambda: fb.switch_case(x, [lambda: x]), wrong_type, "an int32 or int64 scalar")
        refused(
            lambda: fb.switch_case(n, [lambda: x, lambda: x, lambda: (x,), lambda: x]),
            wrong_type,
            "branch 2 gives a tuple of 1, but branch 3 the tensor",
        )
