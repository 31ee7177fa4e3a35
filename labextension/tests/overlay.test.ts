import assert from "node:assert/strict";
import { test } from "node:test";

import { cardOf } from "../src/core/card.js";
import { likenessPalette, mixed } from "../src/core/colours.js";
import { scopeEdges } from "../src/core/edges.js";
import { Hierarchy } from "../src/core/hierarchy.js";
import { Colouring, Crossings, OverlayData, Tints, differenceMark, differences, sayCrossing } from "../src/core/overlay.js";
import { overlayPalette, scaleColour } from "../src/core/overlay_colours.js";
import { GraphData } from "../src/core/payload.js";
import { runPaint } from "../src/core/run_colours.js";
import { say } from "../src/core/say.js";
import { EdgeCache, Scene } from "../src/core/scene.js";
import { sceneSvg } from "../src/core/svg.js";
import { timeSize } from "../src/core/words.js";
import { Op, graphOf } from "./graphs.js";

const OPS: Op[] = [
  { name: "x", type: "Placeholder" },
  { name: "a/h", inputs: ["x"] },
  { name: "a/k", inputs: ["a/h"] },
  { name: "b/one", inputs: ["a/h"] },
  { name: "b/two", inputs: ["a/h"] },
  { name: "c", inputs: ["a/h"] },
];
const GROUPS = ["cpu:0", "cpu:1"].map((label, colour) => ({ label, colour, about: [] }));

/** A tree with what is laid over it, by the operations in their order. */
function laid(more: Partial<OverlayData> = {}): { tree: Hierarchy; overlay: OverlayData } {
  const data = graphOf(OPS);
  const none = new Int32Array(0);
  const overlay: OverlayData = {
    title: "a plan",
    colourings: [{ by: "device", unit: "", groups: GROUPS }],
    values: [Float64Array.of(-1, 0, 1, 1, 1, 0)],
    against: [new Float64Array(0)],
    runsOn: Int32Array.of(-1, 0, 1, 1, 1, 0),
    elsewhere: new Int32Array(OPS.length).fill(-1),
    crossTensor: none,
    crossTo: none,
    crossBytes: new Float64Array(0),
    noteStart: new Int32Array(OPS.length + 1),
    noteHeading: none,
    noteText: none,
    noteDetail: none,
    ...more,
  };
  const whole: GraphData = { ...data, overlay };
  return { tree: new Hierarchy(whole), overlay };
}

function amounts(unit: Colouring["unit"], values: number[], against: number[] = []): Tints {
  const { tree, overlay } = laid({
    colourings: [{ by: "time", unit, groups: [] }],
    values: [Float64Array.from(values)],
    against: [Float64Array.from(against)],
  });
  return new Tints(tree, overlay, 0);
}

test("a scope has a share of each colour that its operations have", () => {
  const { tree, overlay } = laid();
  const tints = new Tints(tree, overlay, 0);
  const parts = tints.shares(tree.find("scope:a")!).map(({ group, part }) => [group.label, part]);
  assert.deepEqual(parts, [["cpu:0", 0.5], ["cpu:1", 0.5]]);
  assert.deepEqual(tints.shares(tree.find("op:x")!), []);
  assert.equal(tints.say(tree.find("scope:b")!), "on cpu:1");
  assert.equal(tints.say(tree.find("scope:a")!), "1 on cpu:0, 1 on cpu:1");
  const palette = overlayPalette(tints);
  assert.equal(palette.barOf(tree.find("scope:a")!, false).length, 2);
  assert.equal(palette.paintOf(tree.find("scope:b")!, false).line, runPaint(1, false).colour);
  assert.deepEqual(palette.barOf(tree.find("op:x")!, false), []);
  assert.deepEqual(likenessPalette(tree).barOf(tree.find("scope:a")!, false), []);
});

test("a saved picture has the legend below it", () => {
  const { tree, overlay } = laid();
  const empty: Scene = { width: 10, height: 10, sheets: [], boxes: new Map() };
  const svg = sceneSvg(tree, empty, false, overlayPalette(new Tints(tree, overlay, 0)));
  assert.match(svg, /fill="#0072b2".*>cpu:0</s);
  const [scale] = overlayPalette(amounts("s", [-1, 1, 3, 1, 0, -1])).legend;
  assert.deepEqual([scale.swatch.length, scale.about], [11, "from 0 ns to 4.00 s"]);
  assert.doesNotMatch(sceneSvg(tree, empty, false, likenessPalette(tree)), /<text/);
});

test("amounts add up, and the outermost scope of most has the strongest colour", () => {
  const tints = amounts("s", [-1, 1, 3, 1, 0, -1]);
  const { tree } = tints;
  assert.equal(tints.amount(tree.find("scope:a")!), 4);
  assert.equal(tints.most, 4);
  assert.equal(tints.strength(tree.find("scope:b")!), 0.5);
  assert.equal(tints.strength(tree.find("op:x")!), null);
  assert.deepEqual(tints.ends, ["0 ns", "4.00 s"]);
  assert.equal(tints.say(tree.find("op:x")!), "");
});

test("what is held against something is divided scope by scope, and turns at equal", () => {
  const tints = amounts("x", [-1, 2, 6, 1, 1, -1], [-1, 1, 1, 2, 2, -1]);
  const { tree } = tints;
  assert.equal(tints.amount(tree.find("scope:a")!), 4);
  assert.equal(tints.strength(tree.find("scope:a")!), 1);
  assert.equal(tints.strength(tree.find("scope:b")!), -0.5);
  assert.equal(tints.strengthOf(1), 0);
  assert.equal(tints.strengthOf(1000), 1);
});

test("a value crosses once for each device, along the edges to what runs there", () => {
  const h = 1;
  const { tree, overlay } = laid({
    crossTensor: Int32Array.of(h),
    crossTo: Int32Array.of(1),
    crossBytes: Float64Array.of(4000),
  });
  const crossings = new Crossings(tree, overlay);
  const { within } = scopeEdges(tree, tree.root, new Uint8Array(OPS.length));
  const along = (from: string, to: string): string | null => {
    const edge = within.find(({ source, target }) => source === tree.find(from) && target === tree.find(to))!;
    const found = crossings.of(edge);
    return found && sayCrossing(found);
  };
  assert.equal(along("scope:a", "scope:b"), "4.0 kB to cpu:1");
  assert.equal(along("scope:a", "op:c"), null);
  assert.equal(along("op:x", "scope:a"), null);
  const choices = { opened: new Set<number>(), aside: new Map(), controls: false, sideways: false };
  const plain = new EdgeCache(new Hierarchy(graphOf(OPS)), choices);
  assert.equal(plain.crossing(within[0]), null);
});

test("what runs elsewhere in another plan is counted", () => {
  const { tree, overlay } = laid({ elsewhere: Int32Array.of(-1, -1, 0, 0, 0, 0) });
  const found = differences(tree, overlay);
  assert.equal(differenceMark(tree, found, tree.find("scope:b")!), "≠ 2");
  assert.equal(differenceMark(tree, found, tree.find("op:c")!), "≠");
  assert.equal(differenceMark(tree, found, tree.find("op:x")!), "");
  assert.equal(differenceMark(tree, null, tree.find("op:c")!), "");
});

test("a card begins with what is laid over, and a scope's with what it has", () => {
  const { tree, overlay } = laid({ noteStart: Int32Array.of(0, 0, 2, 2, 2, 2, 2) });
  const strings = tree.data.strings as string[];
  const [heading, text, detail] = ["runs on", "cpu:0", "it asks for it"].map((each) => strings.push(each) - 1);
  Object.assign(overlay, {
    noteHeading: Int32Array.of(heading, heading),
    noteText: Int32Array.of(text, text),
    noteDetail: Int32Array.of(detail, detail),
  });
  const tints = [new Tints(tree, overlay, 0)];
  const { sections } = cardOf(tree, { kind: "node", node: tree.find("op:a/h")! }, tints);
  assert.equal(sections[0].heading, "runs on");
  assert.deepEqual(sections[0].items.map((item) => `${item.text}: ${item.detail}`), ["cpu:0: it asks for it", "cpu:0: it asks for it"]);
  const scope = cardOf(tree, { kind: "node", node: tree.find("scope:a")! }, tints).sections[0];
  assert.deepEqual(scope.items.map((item) => `${item.text}: ${item.detail}`), ["cpu:0: 1 operation", "cpu:1: 1 operation"]);
});

test("what the keyboard's tree says tells of the colour", () => {
  const { tree, overlay } = laid();
  const tints = new Tints(tree, overlay, 0);
  tree.coloured = (node) => tints.say(node);
  assert.equal(say(tree, tree.find("op:c")!), "Op, on cpu:0");
});

test("colours are those of the static pictures", () => {
  assert.equal(scaleColour(0, false, false), "#f4f5f8");
  assert.equal(scaleColour(1, false, false), "#f4a35a");
  assert.equal(scaleColour(-1, true, false), "#8fbce8");
  assert.equal(mixed("#ffffff", "#d55e00", 0.16), "#f8e5d6");
});

test("durations have three digits", () => {
  const texts = [4.2e-7, 1.26e-5, 0.0123, 0.99999, 250].map(timeSize);
  assert.deepEqual(texts, ["420 ns", "12.6 us", "12.3 ms", "1.00 s", "250 s"]);
});
