// Plain layers for scopes of many members: in time that grows with the number of edges.

import { GAP, LAYER_GAP, Layout, LayoutRequest, emptyLayout, normalise } from "./layout.js";

const SWEEPS = 4;

/** Members in layers, each below all it takes from; wide layers go on in a further row. */
export function layered(request: LayoutRequest, placed: readonly number[]): Layout {
  const layout = emptyLayout(request);
  const layers = ordered(request, placed, ranks(request, placed));
  const area = placed.reduce((sum, i) => sum + (request.sizes[i][0] + GAP) * (request.sizes[i][1] + LAYER_GAP), 0);
  const widest = placed.reduce((most, i) => Math.max(most, request.sizes[i][0]), 0);
  const room = Math.max(widest, Math.sqrt(area) * 1.5);
  let y = 0;
  for (const layer of layers) {
    for (const row of rowsOf(request, layer, room)) {
      const width = row.reduce((sum, i) => sum + request.sizes[i][0] + GAP, -GAP);
      const height = row.reduce((most, i) => Math.max(most, request.sizes[i][1]), 0);
      let x = -width / 2;
      for (const i of row) {
        layout.x[i] = x + request.sizes[i][0] / 2;
        layout.y[i] = y + height / 2;
        x += request.sizes[i][0] + GAP;
      }
      y += height + LAYER_GAP;
    }
  }
  const inside = new Set(placed);
  request.edges.forEach(([source, target], e) => {
    if (inside.has(source) && inside.has(target)) layout.edges[e].points = between(request, layout, source, target);
  });
  normalise(request, placed, layout);
  return layout;
}

/** Longest paths. Where scopes feed each other, an edge to an earlier one counts as turned round. */
function ranks(request: LayoutRequest, placed: readonly number[]): Map<number, number> {
  const rank = new Map<number, number>(placed.map((i) => [i, 0]));
  const into = new Map<number, number[]>();
  for (const [source, target] of request.edges) {
    if (source === target || !rank.has(source) || !rank.has(target)) continue;
    const [low, high] = source < target ? [source, target] : [target, source];
    const known = into.get(high);
    if (known) known.push(low);
    else into.set(high, [low]);
  }
  for (const i of placed) {
    for (const source of into.get(i) ?? []) rank.set(i, Math.max(rank.get(i)!, rank.get(source)! + 1));
  }
  return rank;
}

function ordered(request: LayoutRequest, placed: readonly number[], rank: Map<number, number>): number[][] {
  const layers: number[][] = [];
  for (const i of placed) (layers[rank.get(i)!] ??= []).push(i);
  const neighbours = new Map<number, { above: number[]; below: number[] }>(
    placed.map((i) => [i, { above: [], below: [] }]),
  );
  for (const [source, target] of request.edges) {
    if (source === target || !rank.has(source) || !rank.has(target)) continue;
    const [up, down] = rank.get(source)! < rank.get(target)! ? [source, target] : [target, source];
    neighbours.get(up)!.below.push(down);
    neighbours.get(down)!.above.push(up);
  }
  const place = new Map<number, number>();
  const number = (layer: number[]): void => layer.forEach((i, at) => place.set(i, (at + 0.5) / layer.length));
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wanted = new Map<number, number>();
      for (const i of layer) {
        const near = down ? neighbours.get(i)!.above : neighbours.get(i)!.below;
        const sum = near.reduce((total, other) => total + place.get(other)!, 0);
        wanted.set(i, near.length > 0 ? sum / near.length : place.get(i)!);
      }
      layer.sort((a, b) => wanted.get(a)! - wanted.get(b)! || a - b);
      number(layer);
    }
  }
  return layers;
}

function rowsOf(request: LayoutRequest, layer: readonly number[], room: number): number[][] {
  const found: number[][] = [];
  let width = Infinity;
  for (const i of layer) {
    const [own] = request.sizes[i];
    if (width + own > room) {
      found.push([]);
      width = 0;
    }
    found[found.length - 1].push(i);
    width += own + GAP;
  }
  return found;
}

function between(request: LayoutRequest, layout: Layout, source: number, target: number): number[] {
  const down = layout.y[source] <= layout.y[target] ? 1 : -1;
  return [
    layout.x[source],
    layout.y[source] + (down * request.sizes[source][1]) / 2,
    layout.x[target],
    layout.y[target] - (down * request.sizes[target][1]) / 2,
  ];
}
