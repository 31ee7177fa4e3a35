import assert from "node:assert/strict";
import { test } from "node:test";

import { Arranging, arranging, arrangingFirst, openedFirst } from "../src/core/arranging.js";
import { Hierarchy } from "../src/core/hierarchy.js";
import { Layout, LayoutRequest } from "../src/core/layout.js";
import { Legible, fitting, nameBeyond } from "../src/core/legible.js";
import { textWidth } from "../src/core/letters.js";
import { firstScene, made } from "../src/core/picture.js";
import { layOut } from "../src/core/placing.js";
import { Box, Choices, EdgeCache } from "../src/core/scene.js";
import { Op, chainOf, graphOf } from "./graphs.js";

const NOTHING: Choices = { opened: new Set(), aside: new Map(), controls: false, sideways: false };

/** Something that feeds many, each of a name that begins so. */
function fanOf(count: number, name = "a_rather_long_name_of_an_operation"): Hierarchy {
  const ops: Op[] = [{ name: "x" }];
  for (let i = 0; i < count; i++) ops.push({ name: `${name}_${i}`, inputs: ["x"] });
  return new Hierarchy(graphOf(ops));
}

/** What is made of layouts that come later, and what was asked for. */
async function later<Made>(steps: Arranging<Made>): Promise<[Made, LayoutRequest[]]> {
  const asked: LayoutRequest[] = [];
  let step = steps.next();
  while (!step.done) {
    asked.push(step.value);
    step = steps.next(await new Promise<Layout>((done) => setImmediate(() => done(layOut(asked.at(-1)!)))));
  }
  return [step.value, asked];
}

test("layouts that come at once and later make the same picture, the inner ones first", async () => {
  const tree = new Hierarchy(chainOf(3));
  const opened = [0, 2].map((i) => tree.find(`scope:layer_${i}`)!);
  const choices = { ...NOTHING, opened: new Set(opened) };
  const steps = () => arranging(tree, new EdgeCache(tree, choices), choices);
  const [scene, asked] = await later(steps());
  assert.deepEqual(scene, made(steps()));
  assert.deepEqual(asked.map(({ sizes }) => sizes.length), [2, 2, 4]);
  assert.deepEqual(asked[2].sizes[1], [scene.boxes.get(opened[0])!.width, scene.boxes.get(opened[0])!.height]);
});

test("a first picture lies on its side where it fits as well, or is much larger so", () => {
  const lies = (tree: Hierarchy): boolean => firstScene(tree).sideways;
  assert.ok(lies(new Hierarchy(chainOf(3))), "a short chain");
  assert.ok(!lies(fanOf(11, "y")), "a layer of short names");
  assert.ok(lies(fanOf(11)), "one of long names");
});

test("a large picture is not laid out twice", async () => {
  const asked = async (tree: Hierarchy): Promise<boolean[]> => {
    const [, requests] = await later(arrangingFirst(tree, new EdgeCache(tree, NOTHING), NOTHING));
    return requests.map(({ sideways }) => sideways);
  };
  assert.deepEqual(await asked(fanOf(39)), [false, true]);
  assert.deepEqual(await asked(fanOf(40)), [false]);
});

test("one scope alone is opened at first, and what is alone in it", () => {
  const tree = new Hierarchy(graphOf([{ name: "a/b/x" }, { name: "a/b/c/y", inputs: ["a/b/x"] }]));
  assert.deepEqual([...openedFirst(tree)], [tree.find("scope:a"), tree.find("scope:a/b")]);
  assert.equal(openedFirst(new Hierarchy(chainOf(2))).size, 0);
});

test("widths of texts grow with their letters and their size", () => {
  assert.ok(textWidth("iii", 10) < textWidth("nnn", 10));
  assert.ok(textWidth("nnn", 10) < textWidth("漢漢漢", 10));
  assert.equal(textWidth("abc", 20), 2 * textWidth("abc", 10));
  assert.equal(textWidth("", 10), 0);
});

test("small names are shortened to their room, and left out where nothing can be read", () => {
  const face = { title: "a_rather_long_name", detail: "MatMul", width: 120, height: 40 };
  const box = { x: 0, y: 0, width: 120, height: 40, face } as Box;
  const none = { left: 0, right: 0, above: 0, below: 0 };
  const wide = { left: 120, right: 120, above: 20, below: 20 };
  const beyond = (scale: number, room = none) => nameBeyond(box, room, new Legible(scale), textWidth);
  assert.match(beyond(0.25)!.title, /^a_.*…/);
  assert.equal(beyond(0.25)!.isOnLines, false);
  assert.equal(beyond(0.25, wide)!.title, "a_rather_long_name");
  assert.equal(beyond(0.25, wide)!.isOnLines, true);
  assert.equal(beyond(0.1), null);
  assert.equal(fitting("abcdef", 20, (text) => 10 * text.length), "");
  assert.equal(fitting("abcdef", 50, (text) => 10 * text.length), "abcd…");
  assert.equal(new Legible(1).details, true);
  assert.equal(new Legible(0.5).details, false);
});
