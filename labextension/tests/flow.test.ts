import assert from "node:assert/strict";
import { test } from "node:test";

import { arranging } from "../src/core/arranging.js";
import { cardOf } from "../src/core/card.js";
import { scopeEdges } from "../src/core/edges.js";
import { faceOf } from "../src/core/faces.js";
import { Hierarchy } from "../src/core/hierarchy.js";
import { made } from "../src/core/picture.js";
import { layOut } from "../src/core/placing.js";
import { GraphData, Kind } from "../src/core/payload.js";
import { say } from "../src/core/say.js";
import { Choices, EdgeCache } from "../src/core/scene.js";
import { Search } from "../src/core/search.js";
import { neighbours } from "../src/core/selection.js";
import { withSeries } from "../src/core/series.js";
import { likenessPalette } from "../src/core/colours.js";
import { sceneSvg } from "../src/core/svg.js";
import { graphOf } from "./graphs.js";

const allSeen = (tree: Hierarchy): Uint8Array => new Uint8Array(tree.data.operations);

/** A loop as Python pictures it: a variable, what routes it, its condition and its body. */
function loop(): GraphData {
  const routing = { routing: true };
  return graphOf(
    [
      { name: "x" },
      { name: "loop/i/Enter", type: "Enter", inputs: ["x"], ...routing },
      { name: "loop/i/Merge", type: "Merge", inputs: ["loop/i/Enter"], wires: [], ...routing },
      { name: "loop/condition/Less", type: "Less", inputs: ["loop/i/Merge"] },
      { name: "loop/i/Switch", type: "Switch", inputs: ["loop/i/Merge", "loop/condition/Less"], wires: [], ...routing },
      { name: "loop/body/pivot", type: "Identity", inputs: ["loop/i/Switch"], wires: ["loop/condition/Less"], ...routing },
      { name: "loop/taken", type: "Enter", inputs: ["x"], wires: [], ...routing },
      { name: "loop/body/Add", type: "Add", inputs: ["loop/i/Switch", "loop/taken"], wires: ["loop/i/Switch", "x"] },
      { name: "loop/i/Next", type: "NextIteration", inputs: ["loop/body/Add"], ...routing, round: true },
      { name: "loop/i/Exit", type: "Exit", inputs: ["loop/i/Switch"], wires: [], ...routing },
      { name: "y", inputs: ["loop/i/Exit"] },
    ],
    {},
    { loop: Kind.Loop, "loop/i": Kind.Role, "loop/condition": Kind.Part, "loop/body": Kind.Part },
  );
}

const tree = (showsRouting = false): Hierarchy => {
  const data = loop();
  return new Hierarchy(data, data.parent, data.kind, data.template, data.aside, [], showsRouting);
};
const members = (of: Hierarchy, scope: string): string[] => of.members(of.find(scope)!).map((node) => of.name(node));
const joined = (of: Hierarchy, scope: string): unknown[] =>
  scopeEdges(of, of.find(scope)!, allSeen(of)).within.map((e) => [of.label(e.source), of.label(e.target), e.tensors.length, e.round]);

test("what only routes values is not shown, and can be asked for", () => {
  assert.deepEqual(members(tree(), "scope:loop"), ["loop/i", "loop/condition", "loop/body"]);
  assert.deepEqual(members(tree(), "scope:loop/i"), []);
  assert.deepEqual(members(tree(), "scope:loop/body"), ["loop/body/Add"]);
  assert.deepEqual(members(tree(true), "scope:loop"), ["loop/i", "loop/condition", "loop/body", "loop/taken"]);
  assert.equal(members(tree(true), "scope:loop/i").length, 5);
});

test("lines go from a variable to the parts, on to the body, and round", () => {
  assert.deepEqual(joined(tree(), "scope:loop"), [
    ["i", "condition", 1, false],
    ["i", "body", 1, false],
    ["condition", "body", 1, false],
    ["body", "i", 1, true],
  ]);
  assert.deepEqual(joined(tree(), "scope:"), [["x", "loop", 1, false], ["loop", "y", 1, false]]);
  // With what routes shown, they are the inputs.
  assert.deepEqual(joined(tree(true), "scope:loop").at(-1), ["taken", "body", 1, false]);
});

test("what joins a node is who gives the value, not who routes it", () => {
  const plain = tree();
  const add = plain.find("op:loop/body/Add")!;
  const { before } = neighbours(plain, add);
  assert.deepEqual([...before].map((op) => plain.name(op)).sort(), ["loop/i/Switch", "x"]);
  // The card says what the inputs are.
  const { sections } = cardOf(plain, { kind: "node", node: add });
  const inputs = sections.find(({ heading }) => heading === "inputs")!.items.map(({ text }) => text);
  assert.deepEqual(inputs, ["loop/i/Switch:0", "loop/taken:0"]);
  const around = sections.find(({ heading }) => heading === "in")!.items.map(({ text }) => text);
  assert.deepEqual(around, ["loop/body", "loop"]);
});

test("a loop says how it ran", () => {
  const plain = tree();
  const node = plain.find("scope:loop")!;
  assert.equal(faceOf(plain, node).title, "↻ loop");
  assert.equal(faceOf(plain, node).detail, "2 operations");
  plain.ran = { loop: "ran 37 times" };
  assert.equal(faceOf(plain, node).detail, "ran 37 times");
  assert.equal(say(plain, node), "loop, ran 37 times, 2 operations");
  const card = cardOf(plain, { kind: "node", node });
  assert.equal(card.subtitle, "loop");
  assert.ok(card.sections[0].items.some(({ text }) => text === "ran 37 times"));
});

test("what is not shown is found all the same", () => {
  const { found } = new Search(tree()).find("taken");
  assert.equal(found[0].name, "loop/taken");
});

test("calls of a function lead to its one body, and that to them", () => {
  const data = graphOf(
    [
      { name: "x" },
      { name: "functions/step/Tanh", type: "Tanh" },
      { name: "step", type: "Call", inputs: ["x"], body: "functions/step" },
      { name: "step_1", type: "Call", inputs: ["step"], body: "functions/step" },
    ],
    {},
    { "functions/step": Kind.Function },
  );
  const of = new Hierarchy(data, data.parent, data.kind, data.template, data.aside, []);
  const [body, call] = [of.find("scope:functions/step")!, of.find("op:step_1")!];
  const goals = (node: number, heading: string): unknown[] =>
    cardOf(of, { kind: "node", node }).sections.find((section) => section.heading === heading)!.items.map(({ text, goal }) => [text, goal]);
  assert.deepEqual(goals(call, "calls"), [["functions/step", { kind: "node", node: body }]]);
  assert.deepEqual(goals(body, "called by"), ["step", "step_1"].map((name) => [name, { kind: "node", node: of.find(`op:${name}`) }]));
  const face = faceOf(of, call);
  assert.deepEqual([face.title, face.detail], ["ƒ step_1", "call of step"]);
  assert.equal(say(of, call), "call of functions/step");
  assert.equal(of.body(of.find("op:x")!), -1);
});

test("names of their own are used whole", () => {
  const data = loop();
  const named = new Int32Array(data.parent.length).fill(-1);
  const add = new Hierarchy(data).find("op:loop/body/Add")!;
  named[add] = data.strings.length;
  const whole = { ...data, named, strings: [...data.strings, "loop/Add"] };
  const own = new Hierarchy(whole);
  assert.equal(own.name(add), "loop/Add");
  assert.equal(own.tensorName(data.outputStart[add]), "loop/Add:0");
  assert.equal(own.find("op:loop/Add"), add);
  assert.equal(withSeries(whole).name(add), "loop/Add");
});

for (const sideways of [false, true]) {
  test(`lines that go round do so beside everything (${sideways ? "sideways" : "down"})`, () => {
    const plain = tree();
    const opened = new Set([plain.find("scope:loop")!]);
    const choices: Choices = { opened, aside: new Map(), controls: false, sideways };
    const scene = made(arranging(plain, new EdgeCache(plain, choices), choices));
    const round = scene.sheets.flatMap(({ strokes }) => strokes).filter((stroke) => stroke.round);
    assert.equal(round.length, 1);
    const box = (key: string) => scene.boxes.get(plain.find(key)!)!;
    const [body, variable, whole] = [box("scope:loop/body"), box("scope:loop/i"), box("scope:loop")];
    const { points } = round[0];
    const far = Math.max(...points.filter((_, i) => (i % 2 === 1) === sideways));
    const parts = [body, variable, box("scope:loop/condition")];
    const ends = parts.map(({ x, y, width, height }) => (sideways ? y + height : x + width));
    assert.ok(far > Math.max(...ends), "beside the parts");
    assert.ok(far < (sideways ? whole.y + whole.height : whole.x + whole.width), "within the loop");
    const inside = (at: number, low: number, size: number): boolean => at >= low - 0.1 && at <= low + size + 0.1;
    assert.ok(inside(points[0], body.x, body.width) && inside(points[1], body.y, body.height));
    assert.ok(inside(points.at(-2)!, variable.x, variable.width) && inside(points.at(-1)!, variable.y, variable.height));
    const start = sideways ? variable.x : variable.y;
    assert.ok(start < (sideways ? body.x : body.y), "variables come first");
    assert.match(sceneSvg(plain, scene, sideways, likenessPalette(plain)), /stroke="#[0-9a-f]{6}" stroke-width="1.2"/);
  });
}

test("what goes round is not cut into columns, however long it is", () => {
  const count = 40;
  const sizes = Array.from({ length: count }, () => [90, 40] as const);
  const chain = sizes.slice(1).map((_, i) => [i, i + 1, 0, 0] as const);
  const request = { sizes, row: [], entering: [], leaving: [], aside: [], sideways: false, aspect: 1.5 };
  const columns = layOut({ ...request, edges: chain, round: [] });
  assert.ok(new Set(columns.x.map(Math.round)).size > 1);
  const whole = layOut({ ...request, edges: [...chain, [count - 1, 0, 0, 0]], round: [count - 1] });
  assert.equal(new Set(whole.x.map(Math.round)).size, 1);
});

test("what leaves a loop does so below its body", () => {
  // A variable that leaves, and a body below it, which the line has to pass beside.
  const layout = layOut({
    sizes: [[40, 22], [90, 60], [200, 300]],
    edges: [[0, 1, 0, 0], [0, 2, 0, 0], [1, 2, 0, 0], [2, 0, 0, 0]],
    round: [3],
    row: [0],
    entering: [0],
    leaving: [0],
    aside: [],
    sideways: false,
    aspect: 1.5,
  });
  const [line] = layout.leaving;
  assert.ok(line!.at(-1)! > layout.y[2] + 150);
});

test("variables stand in one row, and no two lines that go round share a lane", () => {
  // Two variables, of which one is taken by the condition, and a body that takes both.
  const layout = layOut({
    sizes: [[40, 22], [40, 22], [90, 60], [90, 60], [60, 22]],
    edges: [[0, 2, 0, 0], [0, 3, 0, 0], [1, 3, 0, 0], [2, 3, 0, 0], [3, 0, 0, 0], [3, 1, 0, 0], [4, 0, 0, 0]],
    round: [4, 5],
    row: [0, 1],
    entering: [],
    leaving: [],
    aside: [],
    sideways: false,
    aspect: 1.5,
  });
  assert.equal(layout.y[0], layout.y[1]);
  const lanes = [4, 5].map((e) => Math.max(...layout.edges[e].points.filter((_, i) => i % 2 === 0)));
  assert.notEqual(lanes[0], lanes[1]);
  assert.ok(Math.max(...lanes) <= layout.width);
  assert.ok(layout.edges.every(({ points }) => points.every((value) => value >= 0)));
});
