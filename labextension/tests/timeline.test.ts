import assert from "node:assert/strict";
import { test } from "node:test";

import { PageSelection } from "../src/core/page_selection.js";
import { TimeWindow, timeTicks } from "../src/core/time_window.js";
import { Timeline, another, firstAfter, labelOf, nearest, readTimeline, search, worksOf } from "../src/core/timeline.js";
import { Window, drawRow } from "../src/core/timeline_blocks.js";
import { packed } from "./packed.js";

type Call = readonly [row: number, start: number, end: number, work?: number, group?: number];

const WORKS = [
  ["net/a", "MatMul", "cell [1], line 2", [], "net/a", "h"],
  ["net/b", "Exp", "", ["net/c"], "net/b", ""],
  ["net/a:0/send", "Send", "", [], "net/a", ""],
];

function timeline(calls: readonly Call[], rows = [2, 1]): Timeline {
  const real = (of: (call: Call) => number): Float64Array => Float64Array.from(calls, of);
  const whole = (of: (call: Call) => number): Int32Array => Int32Array.from(calls, of);
  const lanes = rows.map((count, i) => [`cpu:${i}`, "main", false, count, 10]);
  const header = {
    format: 2, title: "", remark: "", end: 1000, lanes, works: WORKS, threads: ["main"],
    colourings: [["type", [["MatMul", 5], ["2 others", 1]], true]],
  };
  const zero = real(() => 0);
  return readTimeline(
    packed(header, {
      row: whole(([row]) => row), start: real(([, start]) => start), end: real(([, , end]) => end), delay: zero,
      work: whole(([, , , work]) => work ?? 0), step: whole(() => 0), iteration: whole(() => 0), bytes: zero, live: zero,
      sent: new Int32Array(0), received: new Int32Array(0), stepStart: Float64Array.of(0), stepEnd: Float64Array.of(1000),
      group0: Uint8Array.from(calls, ([, , , , group]) => group ?? 0),
    }),
  );
}

function drawn(shown: Timeline, window: Window): (string | number)[][] {
  const found: (string | number)[][] = [];
  drawRow(shown, 0, window, shown.colourings[0].of, 2, {
    call: (call, left, right) => found.push(["call", call, left, right]),
    block: (group, strength, left, right) => found.push(["block", group, strength, left, right]),
  });
  return found;
}

test("calls are found by rows and moments", () => {
  const found = timeline([[0, 0, 10], [0, 20, 30], [0, 30, 40], [2, 5, 6]]);
  assert.deepEqual([...found.rowStart], [0, 3, 3, 4]);
  assert.deepEqual(found.laneOf, [0, 0, 1]);
  assert.equal(firstAfter(found, 0, 10), 1);
  assert.equal(firstAfter(found, 0, 99), 3);
  assert.equal(nearest(found, 0, 14), 0);
  assert.equal(nearest(found, 0, 16), 1);
  assert.equal(nearest(found, 0, 16, 1), null);
  assert.equal(nearest(found, 1, 16), null);
  assert.equal(nearest(found, 2, 900), 3);
});

test("another format is an error", () => {
  assert.throws(() => readTimeline(packed({ format: 99 }, {})), /reload/);
});

test("wide calls are drawn alone, narrow ones as columns as strong as they are busy", () => {
  const narrow: Call[] = Array.from({ length: 100 }, (_, i) => [0, 100 + i, 100.5 + i, 0, i === 50 ? 1 : 0]);
  const found = timeline([[0, 0, 90, 0, 1], ...narrow]);
  const blocks = drawn(found, { from: 0, unit: 10, width: 100 });
  assert.deepEqual(blocks[0], ["call", 0, 0, 9]);
  // Half of the time is the second of four levels; neighbours of one colour are one block.
  assert.deepEqual(blocks.slice(1), [["block", 0, 0.5, 10, 20]]);
});

test("the colour of a column is that of what took most of its time", () => {
  const found = timeline([[0, 0, 1, 0, 0], [0, 1, 2, 0, 0], [0, 2, 12, 0, 1]]);
  assert.deepEqual(drawn(found, { from: 0, unit: 10, width: 100 }), [["block", 1, 0.75, 0, 2]]);
});

test("columns stay where they are when the window moves, and nothing is drawn twice or left out", () => {
  const calls: Call[] = Array.from({ length: 5000 }, (_, i) => [0, i * 7, i * 7 + (i % 50 === 0 ? 7 : 2), 0, i % 2]);
  const found = timeline(calls);
  const unit = 3.5;
  const edges = (from: number): string[] =>
    drawn(found, { from, unit, width: 400 })
      .filter(([kind]) => kind === "block")
      .map(([, , , left]) => ((left as number) + from / unit).toFixed(3));
  const moved = new Set(edges(700));
  const both = edges(350).filter((left) => Number(left) > 210 && Number(left) < 490);
  assert.ok(both.length > 50);
  assert.ok(both.every((left) => moved.has(left)));
  for (const zoom of [0.1, 1, 3.5, 50, 500]) {
    let last = -Infinity;
    for (const [kind, , ...rest] of drawn(found, { from: 0, unit: zoom, width: 35_000 / zoom })) {
      const left = (kind === "call" ? rest[0] : rest[1]) as number;
      assert.ok(left >= last - 2.001, `${left} after ${last}`);
      last = (kind === "call" ? rest[1] : rest[2]) as number;
    }
    assert.ok(last * zoom >= 34_990);
  }
});

test("a window is zoomed about a point and stays within the trace", () => {
  const seen = new TimeWindow();
  seen.fit(1000);
  assert.ok(seen.whole);
  const at = (part: number): number => seen.from + seen.span * part;
  const before = at(0.25);
  seen.zoom(4, 0.25);
  assert.ok(Math.abs(at(0.25) - before) < 1e-9);
  assert.ok(!seen.whole);
  seen.pan(-100);
  assert.equal(seen.from, -10);
  seen.zoom(1e9, 0.5);
  assert.equal(seen.span, 20);
  seen.bringIn(500, 501);
  assert.ok(seen.from < 500 && seen.from + seen.span > 501);
  seen.bringIn(0, 900);
  assert.ok(seen.from <= 0 && seen.from + seen.span >= 900);
  seen.zoom(1e-9, 0.5);
  assert.ok(seen.whole);
  seen.show(0, 995); // A step that took nearly all of the time.
  assert.ok(!seen.whole);
  seen.fit(1000);
  assert.ok(seen.whole);
});

test("ticks are round and of one unit", () => {
  assert.deepEqual(timeTicks(-10, 999, 6).map(({ text }) => text), ["0", "200 ns", "400 ns", "600 ns", "800 ns"]);
  assert.deepEqual(timeTicks(98_550_000, 99_100_000, 3).map(({ text }) => text), ["98.6 ms", "98.8 ms", "99.0 ms"]);
  assert.deepEqual(timeTicks(10.2, 11.9, 5).map(({ at }) => at), [11]);
});

test("works are found by names, scopes, types and what they stand for", () => {
  const found = timeline([[0, 0, 1, 0], [0, 2, 3, 1], [0, 4, 5, 2]]);
  assert.deepEqual([...worksOf(found, "net/a")], [0, 2]); // What sends it too.
  assert.deepEqual([...worksOf(found, "net")], [0, 1, 2]);
  assert.deepEqual([...worksOf(found, "net/c")], [1]);
  assert.deepEqual([...worksOf(found, "ne")], []);
  assert.deepEqual([...search(found, "NET matmul")], [0]);
  assert.deepEqual([...search(found, " ")], []);
  assert.equal(labelOf(found.works[2]), "send a:0");
  assert.equal(labelOf({ ...found.works[2], operation: "net/b/done/recv", type: "Recv" }), "recv b");
  assert.equal(labelOf(found.works[1]), "b");
  assert.equal(labelOf(found.works[0]), "h (a)");
});

test("from one call of an operation to another, round the ends", () => {
  const found = timeline([[0, 0, 1, 0], [0, 20, 30, 0], [2, 10, 12, 0], [2, 15, 16, 1]]);
  const works = new Set([0]);
  assert.equal(another(found, works, null, true), 0);
  assert.equal(another(found, works, 0, true), 2);
  assert.equal(another(found, works, 2, true), 1);
  assert.equal(another(found, works, 1, true), 0);
  assert.equal(another(found, works, 0, false), 1);
  assert.equal(another(found, works, null, false), 1);
  assert.equal(another(found, new Set([9]), null, true), null);
});

test("views of one graph hear of each other, and of no other graph's", () => {
  const heard: string[] = [];
  const view = (name: string, graph: string): PageSelection => new PageSelection(graph, (told) => heard.push(`${name} ${told}`));
  const [a, b, alone] = [view("a", "g"), view("b", "g"), view("alone", "")];
  view("c", "h");
  view("nobody", "");
  a.tell("x");
  alone.tell("y");
  b.tell(null);
  assert.deepEqual(heard, ["b x", "a null"]);
  b.leave();
  a.tell("z");
  assert.equal(heard.length, 2);
});
