import assert from "node:assert/strict";
import { test } from "node:test";

import { kindText, rates, readPipeline, sidesOf } from "../src/core/pipeline.js";
import { percent, piecesOf } from "../src/core/words.js";
import { packed } from "./packed.js";

const queue = { name: "a", feedsTraining: true, runners: [["r", "failed", "failed: x"]], waiting: [["w", "wish", 1.5, true]] };

function frame(queues: object[], columns: Record<string, Float64Array>, more: object = {}): ArrayBuffer {
  return packed({ format: 1, said: "", verdict: ["waits", "text", ""], queues, more: 0, ...more }, columns);
}

test("columns are cut into those of each queue", () => {
  const found = readPipeline(
    frame([queue, { ...queue, name: "b" }], {
      clock: Float64Array.of(3, 4, 6),
      fill: Float64Array.of(0, 1, 2, 5, 6, 7),
      put: Float64Array.of(0, 10, 30, 0, 0, 0),
      taken: Float64Array.of(0, 0, 0, 0, 1, 6),
    }),
  );
  assert.deepEqual(found.times, [-3, -2, 0]);
  assert.deepEqual(found.queues.map(({ fills }) => [...fills]), [[0, 1, 2], [5, 6, 7]]);
  assert.deepEqual(found.queues[0].putRates, [0, 10, 10]);
  assert.deepEqual(found.queues[1].takenRates, [0, 1, 2]);
  assert.deepEqual(found.queues[0].runners, [{ name: "r", state: "failed", text: "failed: x" }]);
  assert.deepEqual(found.queues[0].waiting, [{ text: "w", wish: "wish", seconds: 1.5, isRunners: true }]);
});

test("nothing yet is no error, and another format is one", () => {
  const none = { clock: new Float64Array(0), fill: new Float64Array(0), put: new Float64Array(0), taken: new Float64Array(0) };
  assert.deepEqual(readPipeline(frame([], none)).times, []);
  assert.throws(() => readPipeline(frame([], none, { format: 99 })), /reload/);
});

test("rates are taken over several samples", () => {
  const clock = Float64Array.of(0, 1, 2, 3, 4, 5);
  assert.deepEqual(rates(clock, Float64Array.of(0, 10, 20, 30, 40, 90)), [0, 10, 10, 10, 10, 20]);
  assert.deepEqual(rates(Float64Array.of(1, 1), Float64Array.of(0, 5)), [0, 0]);
});

test("what is said of queues", () => {
  assert.deepEqual([0, 0.001, 0.634, 1].map(percent), ["0 %", "<1 %", "63 %", "100 %"]);
  assert.deepEqual(["FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "SourceQueue"].map(kindText), [
    "FIFO queue",
    "random shuffle queue",
    "padding FIFO queue",
    "prefetching queue",
  ]);
  const of = (feedsTraining: boolean, runners: unknown[]) => sidesOf({ feedsTraining, runners } as never);
  assert.deepEqual(of(true, [1]), { taking: "training waits", filling: "runner waits" });
  assert.deepEqual(of(false, []), { taking: "next runner waits", filling: "filling waits" });
});

test("names go on in the next line where a part of them ends", () => {
  assert.deepEqual(piecesOf("input_producer/numbers/queue"), ["input_", "producer/", "numbers/", "queue"]);
  assert.deepEqual(piecesOf("_a__b//c_"), ["_", "a__", "b//", "c_"]);
  assert.deepEqual(piecesOf("queue"), ["queue"]);
});
