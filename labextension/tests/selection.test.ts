import assert from "node:assert/strict";
import { test } from "node:test";

import { cardOf } from "../src/core/card.js";
import { scopeEdges } from "../src/core/edges.js";
import { Hierarchy } from "../src/core/hierarchy.js";
import { Kind, Mark } from "../src/core/payload.js";
import { feedCode, fetchCode, placeholders } from "../src/core/run_code.js";
import { Selection, carriedOver, edgeSelection, focusOf } from "../src/core/selection.js";
import { Op, graphOf } from "./graphs.js";

const OPS: Op[] = [
  { name: "x", type: "Placeholder" },
  { name: "y", type: "Placeholder" },
  { name: "a/h", inputs: ["x"] },
  { name: "b/one", inputs: ["a/h"] },
  { name: "b/two", inputs: ["a/h", "y"] },
  { name: "late", inputs: ["b/one"], controls: ["b/two"] },
];

function treeOf(ops: Op[]): Hierarchy {
  const data = graphOf(ops);
  ops.forEach(({ type }, i) => {
    if (type === "Placeholder") data.kind[i] = Kind.Input;
  });
  return new Hierarchy(data);
}

const tensor = (tree: Hierarchy, name: string): number => tree.data.outputStart[tree.find(`op:${name}`)!];

test("code feeds the placeholders that a fetch needs, and no others", () => {
  const tree = treeOf(OPS);
  assert.equal(fetchCode(tree, tensor(tree, "x")), 'sess.run("x:0", {\n    "x:0": ...,  # float32 [2, 3]\n})');
  assert.equal(fetchCode(tree, tensor(tree, "b/one")), 'sess.run("b/one:0", {\n    "x:0": ...,  # float32 [2, 3]\n})');
  // What it waits for counts.
  const late = { tensors: [tensor(tree, "late")], operations: [] };
  assert.deepEqual(placeholders(tree, late, []), [tensor(tree, "x"), tensor(tree, "y")]);
  assert.deepEqual(placeholders(tree, late, [tensor(tree, "a/h")]), [tensor(tree, "y")]);
  const constant = treeOf([{ name: "c" }]);
  assert.equal(fetchCode(constant, 0), 'sess.run("c:0")');
});

test("code that feeds an edge runs what takes it, or what the view fetches", () => {
  const tree = treeOf(OPS);
  assert.equal(
    feedCode(tree, tensor(tree, "a/h")),
    'sess.run(["b/one:0", "b/two:0"], {\n    "a/h:0": ...,  # float32 [2, 3]\n    "y:0": ...,  # float32 [2, 3]\n})',
  );
  assert.equal(feedCode(tree, tensor(tree, "late")), null);
  const marked = treeOf(OPS.map((op) => ({ ...op, marks: op.name === "late" ? Mark.Fetched | Mark.Executed : Mark.Executed })));
  assert.match(feedCode(marked, tensor(marked, "b/one"))!, /^sess.run\("late:0", \{\n {4}"b\/one:0": \.\.\./);
});

test("names in code hide nothing", () => {
  const tree = treeOf([{ name: 'a"\\\n\u202eb' }]);
  assert.equal(fetchCode(tree, 0), 'sess.run("a\\"\\\\\\u000a\\u202eb:0")');
});

test("an edge of one tensor is that tensor", () => {
  assert.deepEqual(edgeSelection(1, 2, [7]), { kind: "tensor", tensor: 7 });
  assert.equal(edgeSelection(1, 2, [7, 8]).kind, "edge");
});

test("a selection is found again in a later state of the graph", () => {
  const before = treeOf(OPS);
  const after = treeOf([{ name: "first" }, ...OPS.filter(({ name }) => name !== "late")]);
  const [a, b] = [before.find("scope:a")!, before.find("scope:b")!];
  const moved = carriedOver(before, after, { kind: "tensor", tensor: tensor(before, "a/h") });
  assert.deepEqual(moved, { kind: "tensor", tensor: tensor(after, "a/h") });
  const edge: Selection = { kind: "edge", source: a, target: b, tensors: [tensor(before, "a/h"), tensor(before, "x")] };
  assert.equal(carriedOver(before, after, edge)?.kind, "edge");
  assert.equal(carriedOver(before, after, { kind: "tensor", tensor: tensor(before, "late") }), null);
  assert.equal(carriedOver(before, after, { kind: "node", node: before.find("op:late")! }), null);
});

test("a tensor stands out with all that takes it, as far as that is shown", () => {
  const tree = treeOf(OPS);
  const [a, b] = [tree.find("scope:a")!, tree.find("scope:b")!];
  const h = tensor(tree, "a/h");
  const focus = focusOf(tree, new Set(), { kind: "tensor", tensor: h });
  assert.deepEqual([...focus.joined], [a, b]);
  assert.deepEqual(focus.links, [[a, b]]);
  assert.ok(focus.touches([a, b], [h]));
  assert.ok(!focus.touches([a, b], [h + 1]));
  const opened = focusOf(tree, new Set([b]), { kind: "tensor", tensor: h });
  assert.deepEqual(opened.links, [[a, tree.find("op:b/one")!], [a, tree.find("op:b/two")!]]);
});

test("the cards of tensors and of edges lead on", () => {
  const tree = treeOf(OPS);
  const h = tensor(tree, "a/h");
  const card = cardOf(tree, { kind: "tensor", tensor: h });
  assert.deepEqual([card.title, card.subtitle], ["a/h:0", "float32 [2, 3] · 24 B"]);
  assert.deepEqual(card.sections.map(({ heading, items }) => [heading, ...items.map(({ text }) => text)]), [
    ["from", "a/h"],
    ["taken by", "b/one", "b/two"],
  ]);
  const edge = cardOf(tree, { kind: "edge", source: 0, target: 1, tensors: [h, 0] });
  assert.equal(edge.title, "2 tensors");
  assert.deepEqual(edge.sections[1].items.map(({ goal }) => goal), [
    { kind: "tensor", tensor: h },
    { kind: "tensor", tensor: 0 },
  ]);
});

test("what only goes to what is set aside leaves no scope", () => {
  const tree = treeOf([{ name: "a/h" }, { name: "gradients/g", inputs: ["a/h"] }, { name: "b", inputs: [] }]);
  const a = tree.find("scope:a")!;
  const unseen = tree.within((node) => node === tree.find("scope:gradients"));
  assert.equal(scopeEdges(tree, a, unseen).leaving.size, 0);
  assert.equal(scopeEdges(tree, a, tree.within(() => false)).leaving.size, 1);
});
