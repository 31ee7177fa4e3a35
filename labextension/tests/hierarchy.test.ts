import assert from "node:assert/strict";
import { test } from "node:test";

import { Card, cardOf as cardOfSelection } from "../src/core/card.js";
import { scopeEdges } from "../src/core/edges.js";
import { Hierarchy } from "../src/core/hierarchy.js";
import { Kind } from "../src/core/payload.js";
import { Search } from "../src/core/search.js";
import { neighbours } from "../src/core/selection.js";
import { withSeries } from "../src/core/series.js";
import { chainOf, graphOf } from "./graphs.js";

const cardOf = (tree: Hierarchy, node: number): Card => cardOfSelection(tree, { kind: "node", node });
const allSeen = (tree: Hierarchy): Uint8Array => new Uint8Array(tree.data.operations);
const named = (tree: Hierarchy, nodes: Iterable<number>): string[] => [...nodes].map((node) => tree.name(node));

test("members come in the order of construction, and names are whole", () => {
  const tree = new Hierarchy(chainOf(3));
  assert.deepEqual(named(tree, tree.children(tree.root)), ["x", "layer_0", "layer_1", "layer_2"]);
  const layer = tree.find("scope:layer_1")!;
  assert.deepEqual(named(tree, tree.children(layer)), ["layer_1/matmul", "layer_1/relu"]);
  assert.equal(tree.count(layer), 2);
  assert.equal(tree.parameters[tree.root], 30);
  assert.equal(tree.alike.get(7), 3);
  assert.equal(tree.nextAlike(layer), tree.find("scope:layer_2"));
  assert.equal(tree.nextAlike(tree.find("scope:layer_2")!), tree.find("scope:layer_0"));
  assert.equal(tree.nextAlike(tree.root), null);
});

test("an operation of a scope's name lies in that scope, and has one name", () => {
  const tree = new Hierarchy(graphOf([{ name: "W/initial" }, { name: "W", inputs: ["W/initial"] }, { name: "y", inputs: ["W"] }]));
  const scope = tree.find("scope:W")!;
  assert.equal(tree.own(scope), 1);
  assert.equal(tree.name(1), "W");
  assert.equal(tree.name(scope), "W");
  assert.deepEqual(named(tree, tree.children(tree.root)), ["W", "y"]);
  assert.equal(cardOf(tree, scope).subtitle, "Op");
});

test("edges join members, each tensor once", () => {
  const tree = new Hierarchy(
    graphOf([
      { name: "x" },
      { name: "a/one", inputs: ["x"] },
      { name: "a/two", inputs: ["x", "a/one"], controls: ["x"] },
      { name: "b/one", inputs: ["a/one", "a/two"] },
      { name: "b/two", inputs: ["a/two", "a/two"] },
    ]),
  );
  const shown = (scope: number): unknown[] =>
    scopeEdges(tree, scope, allSeen(tree)).within.map((e) => [tree.name(e.source), tree.name(e.target), e.tensors.length, e.controls]);
  assert.deepEqual(shown(tree.root), [["x", "a", 1, 1], ["a", "b", 2, 0]]);
  const a = tree.find("scope:a")!;
  assert.deepEqual(shown(a), [["a/one", "a/two", 1, 0]]);
  const { entering, leaving } = scopeEdges(tree, a, allSeen(tree));
  assert.deepEqual(named(tree, entering.keys()), ["a/one", "a/two"]);
  assert.deepEqual(named(tree, leaving.keys()), ["a/one", "a/two"]);
  const near = neighbours(tree, a);
  assert.deepEqual(named(tree, near.before), ["x"]);
  assert.deepEqual(named(tree, near.after), ["b/one", "b/two"]);
});

test("what is inside a closed scope is shown as the scope", () => {
  const tree = new Hierarchy(graphOf([{ name: "a/b/c" }]));
  const [a, b] = [tree.find("scope:a")!, tree.find("scope:a/b")!];
  assert.equal(tree.shown(0, new Set()), a);
  assert.equal(tree.shown(0, new Set([b])), a);
  assert.equal(tree.shown(0, new Set([a])), b);
  assert.equal(tree.shown(0, new Set([a, b])), 0);
});

test("staleness and marks are carried up", () => {
  const tree = new Hierarchy(graphOf([{ name: "a/old", stale: "because", marks: 0 }, { name: "b/new", marks: 1 }]));
  const [a, b] = [tree.find("scope:a")!, tree.find("scope:b")!];
  assert.deepEqual([tree.stale[a], tree.stale[b]], [1, 0]);
  assert.deepEqual([tree.needed[a], tree.needed[b]], [0, 1]);
  assert.equal(cardOf(tree, 0).warning, "stale: because");
  assert.equal(cardOf(tree, a).warning, "1 stale operation inside");
});

test("series take what is alike and numbered, and keep names", () => {
  const tree = withSeries(chainOf(6));
  const members = [...tree.children(tree.root)];
  assert.deepEqual(members.map((node) => tree.kind[node]), [Kind.Plain, Kind.Series]);
  assert.equal(tree.label(members[1]), "layer_0 … layer_5");
  assert.equal(tree.children(members[1]).length, 6);
  assert.equal(tree.name(tree.find("scope:layer_3")!), "layer_3");
  assert.equal(tree.name(tree.children(tree.find("scope:layer_3")!)[1]), "layer_3/relu");
});

test("few, or unlike, members make no series", () => {
  assert.equal(withSeries(chainOf(3)).size, new Hierarchy(chainOf(3)).size);
});

test("search wants every word, and finds the nearest first", () => {
  const search = new Search(new Hierarchy(chainOf(12)));
  assert.equal(search.find("layer_1").found[0].name, "layer_1");
  assert.deepEqual(search.find("layer_11 rel").found.map((each) => each.name), ["layer_11/relu"]);
  assert.equal(search.find("layer_1/relu").found[0].name, "layer_1/relu");
  assert.equal(search.find("RELU").total, 12);
  assert.equal(search.find("placeholder").found[0].name, "x");
  assert.equal(search.find("  ").total, 0);
  assert.equal(search.find("nothing like it").total, 0);
});

test("a word with slashes is held against as many parts of a name", () => {
  const names = ["gradients/block/sum_grad/Shape", "block/first/kernel", "block/sum", "block/summary/x"];
  const search = new Search(new Hierarchy(graphOf(names.map((name) => ({ name })))));
  const found = (query: string): string[] => search.find(query).found.map((each) => each.name);
  assert.equal(found("block/sum")[0], "block/sum");
  assert.equal(found("gradients/block/sum_grad")[0], "gradients/block/sum_grad");
  assert.deepEqual(found("block/first/kernel"), ["block/first/kernel"]);
  assert.equal(search.find("a/b/c/d/e/f").total, 0);
});

test("hostile names stay text", () => {
  const name = "<img src=x onerror=alert(1)>\u0000\u202e";
  const tree = new Hierarchy(graphOf([{ name: `${name}/y` }]));
  assert.equal(cardOf(tree, 0).title, "<img src=x onerror=alert(1)>\uFFFD\uFFFD/y");
});
