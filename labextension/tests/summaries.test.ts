import assert from "node:assert/strict";
import { test } from "node:test";

import { durationText, logTickTexts, logTicks, numberText, padded, positions, stepText, tickTexts } from "../src/core/axes.js";
import { ascending, merged } from "../src/core/merging.js";
import { rebinned, ridgesOf } from "../src/core/ridges.js";
import { curvePaint, runPaint } from "../src/core/run_colours.js";
import { smoothed, usualSmoothing } from "../src/core/smoothing.js";
import { chartsOf, inOrder } from "../src/core/splits.js";
import { fullHeight } from "../src/core/spikes.js";
import { HistogramValue, ImageValue, SummaryStore } from "../src/core/summaries.js";
import { filterOf, grouped, shortOf } from "../src/core/tags.js";
import { packed } from "./packed.js";

/** A frame of summaries. */
function frame(sequence: number, series: unknown[], columns: Parameters<typeof packed>[1], more: object = {}): ArrayBuffer {
  return packed({ format: 1, sequence, runs: [["a", "a"]], said: [], series, texts: [], ...more }, columns);
}

function scalars(sequence: number, start: number, places: number[], values = places.map((place) => place * 10)): ArrayBuffer {
  const [place, value] = [Float64Array.from(places), Float64Array.from(values)];
  return frame(sequence, [[0, "loss", "scalar", start, -1, places.length]], {
    kept: new Float64Array(0),
    scalarPlace: place,
    scalarStep: place,
    scalarTime: place,
    value,
  });
}

test("points of a frame replace those from its start on", () => {
  const store = new SummaryStore();
  assert.equal(store.apply(scalars(0, 0, [0, 1, 2, 3])), true);
  assert.equal(store.apply(scalars(1, 2, [3, 4, 5])), false);
  const [series] = store.series;
  assert.deepEqual(series.places, [0, 1, 3, 4, 5]);
  assert.deepEqual(series.values, [0, 10, 30, 40, 50]);
  store.apply(scalars(2, 0, [0, 5]));
  assert.deepEqual(series.steps, [0, 5]);
});

test("a frame that was lost leaves a gap, and one from the beginning closes it", () => {
  const store = new SummaryStore();
  store.apply(scalars(0, 0, [0, 1]));
  store.apply(scalars(2, 6, [6, 7]));
  const [series] = store.series;
  assert.deepEqual(series.places, [0, 1, 6, 7]);
  store.apply(scalars(3, 0, [0, 1, 2, 3, 4, 5, 6, 7]));
  assert.deepEqual(series.places, [0, 1, 2, 3, 4, 5, 6, 7]);
});

test("of images those that are no longer kept go, and bytes are the page's own", () => {
  const store = new SummaryStore();
  const images = (sequence: number, start: number, kept: number[], places: number[]): ArrayBuffer =>
    frame(sequence, [[0, "digit", "image", start, kept.length, places.length]], {
      kept: Float64Array.from(kept),
      imagePlace: Float64Array.from(places),
      imageStep: Float64Array.from(places),
      imageTime: Float64Array.from(places),
      width: Int32Array.from(places, () => 2),
      height: Int32Array.from(places, () => 1),
      bytes: Int32Array.from(places, (place) => place),
      pixels: Uint8Array.from(places.flatMap((place) => Array<number>(place).fill(place))),
    });
  store.apply(images(0, 0, [], [1, 2, 3]));
  store.apply(images(1, 4, [2], [4]));
  const [series] = store.series;
  assert.deepEqual(series.places, [2, 4]);
  assert.deepEqual([...(series.values[1] as ImageValue).bytes], [4, 4, 4, 4]);
});

test("histograms and texts are read; a tag that changes its kind starts afresh", () => {
  const store = new SummaryStore();
  const one = Float64Array.from([0]);
  const histogram = frame(0, [[0, "w", "histogram", 0, 0, 1]], {
    kept: new Float64Array(0), histogramPlace: one, histogramStep: one, histogramTime: one,
    low: Float64Array.from([-1]), high: Float64Array.from([1]), lost: Float64Array.from([3]),
    buckets: Int32Array.from([2]), limits: Float64Array.from([0, 1]), counts: Float64Array.from([4, 5]),
  });
  assert.equal(store.apply(histogram), true);
  assert.deepEqual([...([...store.series][0].values[0] as HistogramValue).counts], [4, 5]);
  const text = frame(1, [[0, "w", "text", 0, 0, 1]], { kept: one.slice(1), textPlace: one, textStep: one, textTime: one }, { texts: [["hi"]] });
  assert.equal(store.apply(text), true);
  assert.deepEqual([...store.series].map(({ kind, values }) => [kind, values]), [["text", [["hi"]]]]);
});

test("a frame of another format says what to do", () => {
  assert.throws(() => new SummaryStore().apply(frame(0, [], {}, { format: 99 })), /reload/);
});

test("smoothing has no bias at its beginning", () => {
  assert.deepEqual([...smoothed([5, 5, 5, 5], 0.9)].map((value) => value.toFixed(9)), Array<string>(4).fill("5.000000000"));
  assert.deepEqual([...smoothed([1, 2, 3], 0)], [1, 2, 3]);
  // By hand: (0.5 * 1 * 0.5 + 0.5 * 3) / (1 - 0.25).
  assert.ok(Math.abs(smoothed([1, 3], 0.5)[1] - 1.75 / 0.75) < 1e-12);
});

test("what is not finite stays as it is, and counts for nothing", () => {
  const found = smoothed([1, NaN, Infinity, 1], 0.8);
  assert.deepEqual([...found].map((value) => value.toFixed(9)), ["1.000000000", "NaN", "Infinity", "1.000000000"]);
});

test("curves share the rows of one axis, and lose no point", () => {
  const { x, columns } = merged([
    { x: [0, 1, 1, 4], y: [1, 2, 3, 4] },
    { x: [1, 2], y: [5, 6] },
    { x: [], y: [] },
  ]);
  assert.deepEqual(x, [0, 1, 1, 2, 4]);
  assert.deepEqual(columns[0], [1, 2, 3, undefined, 4]);
  assert.deepEqual(columns[1], [undefined, 5, undefined, 6, undefined]);
  assert.deepEqual(columns[2].filter((value) => value !== undefined), []);
});

test("points are put in order, equal ones in theirs", () => {
  assert.equal(ascending([0, 1, 1, 2]), null);
  assert.deepEqual([...ascending([2, 0, 2, 1])!], [1, 3, 0, 2]);
});

test("points lie by step, by the time since a run began, or by time", () => {
  assert.deepEqual(positions("step", [3, 4], [100, 101], 90), [3, 4]);
  assert.deepEqual(positions("relative", [3, 4], [100, 101], 90), [10, 11]);
  assert.deepEqual(positions("time", [3, 4], [100, 101], 90), [100, 101]);
});

test("numbers are short and whole", () => {
  const texts = [0, 0.03125, 1.5e-7, 12_000, 1234.5678, -0.5, 1e9, NaN, Infinity, -Infinity].map((value) => numberText(value));
  assert.deepEqual(texts, ["0", "0.03125", "1.5e-7", "12,000", "1,235", "−0.5", "1e9", "NaN", "∞", "−∞"]);
});

test("the numbers of an axis are told apart", () => {
  assert.deepEqual(tickTexts([0, 5e-5, 1e-4]), ["0", "5e-5", "1e-4"]);
  assert.deepEqual(tickTexts([0, 5e-4, 1e-3]), ["0", "5e-4", "1e-3"]);
  assert.deepEqual(tickTexts([0.25, 0.5, 0.75]), ["0.25", "0.5", "0.75"]);
  assert.deepEqual(tickTexts([1e6, 1.5e6, 2e6]), ["1e6", "1.5e6", "2e6"]);
  assert.deepEqual(tickTexts([-20, 0, 20]), ["−20", "0", "20"]);
  for (const [from, gap] of [[1000, 0.001], [0, 1e-9], [1e12, 1], [-3e-8, 1e-8], [99.99, 0.002]] as const) {
    const texts = tickTexts([0, 1, 2, 3].map((i) => from + i * gap));
    assert.equal(new Set(texts).size, 4, texts.join(" "));
  }
});

test("steps and durations", () => {
  assert.deepEqual([0, 200, 1500, 2e6, -3000].map(stepText), ["0", "200", "1.5k", "2M", "−3k"]);
  assert.deepEqual(
    [0, 0.35, 4.2, 60, 200, 3599.9, 7500, 273_600].map(durationText),
    ["0 s", "350 ms", "4.2 s", "1m", "3m 20s", "1h", "2h 05m", "3d 04h"],
  );
});

test("logarithmic ticks are powers of ten, or parts of them", () => {
  assert.deepEqual(logTicks(0.002, 2000, 9), [0.01, 0.1, 1, 10, 100, 1000]);
  assert.deepEqual(logTicks(0.3, 6, 9), [0.5, 1, 2, 5]);
  assert.ok(logTicks(1e-30, 1e30, 5).length <= 5);
});

test("logarithmic ticks within a power of ten are those of a plain axis", () => {
  assert.deepEqual(logTicks(0.115, 0.48, 5), [0.2, 0.3, 0.4]);
  assert.deepEqual(logTicks(0.76, 0.97, 5), [0.8, 0.85, 0.9, 0.95]);
  assert.deepEqual(logTickTexts(logTicks(1.00001, 1.00003, 5)), ["1.00001", "1.000015", "1.00002", "1.000025", "1.00003"]);
  assert.deepEqual(logTickTexts([0.001, 0.1]), ["0.001", "0.1"]);
  for (const low of [1e-12, 0.3, 7, 1e20]) {
    const found = logTicks(low, low * 1.7, 5);
    assert.ok(found.length >= 2 && found.length <= 6 && found.every((tick) => tick >= low && tick <= low * 1.7), String(found));
  }
});

test("an axis has room around what lies on it", () => {
  assert.deepEqual(padded(2, 2, false), [1.8, 2.2]);
  assert.deepEqual(padded(0, 0, false), [-1, 1]);
  const [low, high] = padded(1e-5, 1, true);
  assert.ok(low > 0 && low < 1e-5 && high > 1);
  assert.deepEqual(padded(NaN, NaN, false), [0, 1]);
});

test("buckets are spread over bins, and no value is lost", () => {
  const histogram = (low: number, high: number, limits: number[], counts: number[]): HistogramValue => ({
    low, high, lost: 0, limits: Float64Array.from(limits), counts: Float64Array.from(counts),
  });
  assert.deepEqual([...rebinned(histogram(0, 4, [2, 4], [4, 8]), 0, 4, 4)], [2, 2, 4, 4]);
  // The last limit lies beyond the values; a bucket may be a single value.
  for (const each of [histogram(0, 1, [0.5, 1e300], [3, 4]), histogram(2, 2, [2], [7]), histogram(-5, 5, [-5, 0, 0, 5], [1, 0, 2, 4])]) {
    const { bins } = ridgesOf([each], 10);
    const sum = (list: Iterable<number>): number => [...list].reduce((a, b) => a + b, 0);
    assert.ok(Math.abs(sum(bins[0]) - sum(each.counts)) < 1e-9);
  }
  const { low, high, peak } = ridgesOf([histogram(0, 1, [1], [2]), histogram(-1, 0, [0], [6])], 2);
  assert.deepEqual([low, high, peak], [-1, 1, 6]);
  assert.equal(ridgesOf([histogram(NaN, NaN, [], [])], 4).peak, 0);
});

test("curves are smoothed by themselves where there are many points", () => {
  const store = new SummaryStore();
  assert.equal(usualSmoothing(store.longestCurve), 0);
  store.apply(scalars(0, 0, [0, 1, 2]));
  assert.deepEqual([store.longestCurve, usualSmoothing(store.longestCurve)], [3, 0]);
  store.apply(scalars(1, 3, [5000, 9999])); // Not all points reach the page.
  assert.equal(usualSmoothing(store.longestCurve), 0.99);
});

test("one bin that drowns all others is cut, and no other", () => {
  assert.equal(fullHeight([[900, 20, 30]]), 45);
  assert.equal(fullHeight([[100, 20, 30]]), 100);
  assert.equal(fullHeight([[900, 20, 500], [900, 0, 0]]), 900);
  assert.equal(fullHeight([[0, 7, 0]]), 7); // There is nothing else to be seen.
  assert.equal(fullHeight([[]]), 0);
});

test("tags are grouped by prefix, numbers by their size", () => {
  assert.deepEqual(grouped(["b/2", "b/10", "loss", "a/x/y", "loss", "b/1", "/odd"]), [
    { prefix: "", tags: ["/odd", "loss"] },
    { prefix: "a", tags: ["a/x/y"] },
    { prefix: "b", tags: ["b/1", "b/2", "b/10"] },
  ]);
  assert.deepEqual(["a/x/y", "loss", "/odd"].map(shortOf), ["x/y", "loss", "/odd"]);
});

test("a filter is a regular expression, or text where it is none", () => {
  const tags = ["train/loss", "test/loss", "f(x)"];
  assert.deepEqual(tags.filter(filterOf("^t.*LOSS$")), ["train/loss", "test/loss"]);
  assert.deepEqual(tags.filter(filterOf("f(x")), ["f(x)"]);
  assert.deepEqual(tags.filter(filterOf(" ")), tags);
});

test("runs that share a colour differ in their dashes", () => {
  const paints = Array.from({ length: 21 }, (_, run) => JSON.stringify(runPaint(run, false)));
  assert.equal(new Set(paints).size, 21);
  assert.notEqual(runPaint(0, true).colour, runPaint(0, false).colour);
});

test("parts of the data share a chart, unless one is alone", () => {
  const charts = chartsOf(["val/loss", "train/loss", "loss", "val/accuracy", "x/loss"]);
  assert.deepEqual(Object.fromEntries(charts), {
    "val/loss": { title: "loss", split: "val" },
    "train/loss": { title: "loss", split: "train" },
    loss: { title: "loss", split: "" },
    "val/accuracy": { title: "val/accuracy", split: "" },
    "x/loss": { title: "x/loss", split: "" },
  });
  assert.deepEqual(inOrder(["Held out", "val", "", "Train", "val"]), ["", "Train", "val", "Held out"]);
});

test("curves of a run alone differ in colour, those of several runs in dashes", () => {
  const alone = [0, 1].map((place) => curvePaint(0, place, true, false));
  assert.notEqual(alone[0].colour, alone[1].colour);
  const several = [0, 1].map((place) => curvePaint(1, place, false, false));
  assert.equal(several[0].colour, several[1].colour);
  assert.deepEqual([several[0].dash.length > 0, several[1].dash.length > 0], [false, true]);
});
