import assert from "node:assert/strict";
import { test } from "node:test";

import { arranging } from "../src/core/arranging.js";
import { hex, likenessPalette } from "../src/core/colours.js";
import { Hierarchy } from "../src/core/hierarchy.js";
import { Layout, LayoutRequest } from "../src/core/layout.js";
import { made } from "../src/core/picture.js";
import { layOut } from "../src/core/placing.js";
import { Choices, EdgeCache, Scene } from "../src/core/scene.js";
import { sceneSvg } from "../src/core/svg.js";
import { byteSize, counted, shortened } from "../src/core/words.js";
import { chainOf, graphOf } from "./graphs.js";

function request(count: number, edges: [number, number][], more: Partial<LayoutRequest> = {}): LayoutRequest {
  return {
    sizes: Array.from({ length: count }, () => [90, 40] as const),
    edges: edges.map(([a, b]) => [a, b, 0, 0] as const),
    entering: [],
    leaving: [],
    round: [],
    row: [],
  aside: [],
    sideways: false,
    aspect: 1.5,
    ...more,
  };
}

function assertApart(asked: LayoutRequest, layout: Layout): void {
  const { sizes } = asked;
  for (let i = 0; i < sizes.length; i++) {
    assert.ok(layout.x[i] - sizes[i][0] / 2 >= -0.01 && layout.x[i] + sizes[i][0] / 2 <= layout.width + 0.01, `${i} in width`);
    assert.ok(layout.y[i] - sizes[i][1] / 2 >= -0.01 && layout.y[i] + sizes[i][1] / 2 <= layout.height + 0.01, `${i} in height`);
    for (let j = 0; j < i; j++) {
      const clear =
        Math.abs(layout.x[i] - layout.x[j]) >= (sizes[i][0] + sizes[j][0]) / 2 - 0.01 ||
        Math.abs(layout.y[i] - layout.y[j]) >= (sizes[i][1] + sizes[j][1]) / 2 - 0.01;
      assert.ok(clear, `${i} and ${j} lie over each other`);
    }
  }
}

/** Edges that are the same at every call, from lower to higher numbers. */
function edgesOf(count: number, reach: number): [number, number][] {
  let seed = 1;
  const next = (): number => (seed = (seed * 16807) % 2147483647);
  return Array.from({ length: count - 1 }, (_, i) => [Math.max(0, i - (next() % reach)), i + 1] as [number, number]);
}

for (const count of [1, 2, 30, 120, 400]) {
  for (const sideways of [false, true]) {
    test(`members of a scope of ${count} are apart${sideways ? ", sideways" : ""}`, () => {
      const asked = request(count, edgesOf(count, 5), { entering: [0], leaving: [count - 1], sideways });
      assertApart(asked, layOut(asked));
    });
  }
}

test("edges run down", () => {
  const edges = edgesOf(40, 3);
  const layout = layOut(request(40, edges.slice(0, 8)));
  for (const [source, target] of edges.slice(0, 8)) assert.ok(layout.y[source] < layout.y[target]);
});

test("scopes that feed each other are laid out all the same", () => {
  const edges = edgesOf(200, 5);
  const asked = request(200, [...edges, [150, 3], [3, 3]]);
  assertApart(asked, layOut(asked));
});

test("a long chain is cut into columns", () => {
  const chain = Array.from({ length: 59 }, (_, i) => [i, i + 1] as [number, number]);
  const asked = request(60, chain);
  const layout = layOut(asked);
  assertApart(asked, layout);
  assert.ok(layout.width > layout.height * 0.7 && layout.width < layout.height * 4, `${layout.width} x ${layout.height}`);
  assert.ok(layout.edges.some((edge) => edge.square));
  assert.ok(layout.edges.every((edge) => edge.points.length >= 4 && edge.points.every(Number.isFinite)));
});

test("what nothing places fills a block, not a row", () => {
  const asked = request(200, []);
  const layout = layOut(asked);
  assertApart(asked, layout);
  assert.ok(layout.width < 4 * layout.height);
});

test("what is set aside has a place of its own, and its edges none", () => {
  const asked = request(5, [[0, 1], [1, 2], [2, 4], [0, 4]], { aside: [4] });
  const layout = layOut(asked);
  assertApart(asked, layout);
  assert.ok(layout.asideAt !== null && layout.x[4] > layout.asideAt && layout.x[2] < layout.asideAt);
  assert.deepEqual(layout.edges.map((edge) => edge.points.length > 0), [true, true, false, false]);
});

test("equal requests give equal layouts", () => {
  const asked = request(100, edgesOf(100, 6));
  assert.deepEqual(layOut(asked), layOut(asked));
});

test("200 members take less time than anyone notices", () => {
  const asked = request(200, edgesOf(200, 8));
  layOut(asked);
  const start = performance.now();
  layOut(asked);
  assert.ok(performance.now() - start < 60);
});

function sceneOf(tree: Hierarchy, opened: number[]): Scene {
  const choices: Choices = { opened: new Set(opened), aside: new Map(), controls: false, sideways: false };
  return made(arranging(tree, new EdgeCache(tree, choices), choices));
}

test("an opened scope holds its members", () => {
  const tree = new Hierarchy(chainOf(5));
  const scope = tree.find("scope:layer_2")!;
  const scene = sceneOf(tree, [scope]);
  const outer = scene.boxes.get(scope)!;
  assert.ok(outer.opened);
  for (const child of tree.children(scope)) {
    const inner = scene.boxes.get(child)!;
    assert.ok(inner.x >= outer.x && inner.x + inner.width <= outer.x + outer.width);
    assert.ok(inner.y >= outer.y && inner.y + inner.height <= outer.y + outer.height);
  }
});

test("edges say what they carry", () => {
  const scene = sceneOf(new Hierarchy(chainOf(2)), []);
  assert.deepEqual(scene.sheets[0].strokes.map((stroke) => stroke.label), ["float32 [2, 3] · 24 B", "float32 [2, 3] · 24 B"]);
});

test("the SVG is text and fetches nothing", () => {
  const tree = new Hierarchy(graphOf([{ name: '<script>"&' }, { name: "y", inputs: ['<script>"&'] }]));
  const svg = sceneSvg(tree, sceneOf(tree, []), false, likenessPalette(tree));
  assert.ok(svg.includes("&lt;script&gt;&quot;&amp;") && !svg.includes("<script"));
  assert.ok(!/href|url\(|NaN/.test(svg));
});

test("what is alike has one colour, what is alone has none", () => {
  const tree = new Hierarchy(chainOf(3));
  const palette = likenessPalette(tree);
  const fills = [0, 1, 2].map((i) => palette.paintOf(tree.find(`scope:layer_${i}`)!, false).fill);
  assert.equal(new Set(fills).size, 1);
  const alone = new Hierarchy(chainOf(1));
  assert.notEqual(likenessPalette(alone).paintOf(alone.find("scope:layer_0")!, false).fill, fills[0]);
  assert.equal(hex(1, 0, 0), "#ffffff");
  assert.equal(hex(0, 0, 0), "#000000");
});

test("words", () => {
  assert.equal(counted(1, "operation"), "1 operation");
  assert.equal(counted(36000, "operation"), "36,000 operations");
  assert.deepEqual([0, 999, 1500, 2_500_000].map(byteSize), ["0 B", "999 B", "1.5 kB", "2.5 MB"]);
  assert.equal(shortened("abcdefghij", 5), "ab…ij");
});
