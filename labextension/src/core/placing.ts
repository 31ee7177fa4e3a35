// Where the members of one scope go: in layers, edges running down, each member as large as it is
// asked to be. Pure; runs in a worker.
//
// Small scopes are laid out by dagre; larger ones, which would take it too long, in plain layers.
// What no edge places goes into a block below. Long chains are cut into columns.

import dagre from "@dagrejs/dagre";

import { layered } from "./layered.js";
import { GAP, LAYER_GAP, Layout, LayoutRequest, Line, emptyLayout, normalise, transposed, transposedRequest } from "./layout.js";
import { wrapped } from "./wrap.js";

const MOST_FOR_DAGRE = 130;
const MOST_PORT_LINES = 24;
const MOST_LOOSE_IN_PLACE = 6;
const ASIDE_GAP = 44;
const LANE = 8; // Between lines that go round.
const CLEAR = 16; // From them to what they go round.

export function layOut(request: LayoutRequest): Layout {
  return request.sideways ? transposed(layOutDown(transposedRequest(request))) : layOutDown(request);
}

function layOutDown(request: LayoutRequest): Layout {
  const count = request.sizes.length;
  const aside = new Set(request.aside);
  const joined = new Set<number>();
  for (const [source, target] of request.edges) {
    if (!aside.has(source) && !aside.has(target)) joined.add(source).add(target);
  }
  const placed: number[] = [];
  const loose: number[] = [];
  for (let i = 0; i < count; i++) {
    if (aside.has(i)) continue;
    if (joined.has(i)) placed.push(i);
    else loose.push(i);
  }
  // A few that stand alone still show how they hang together with what is outside.
  if (loose.length <= MOST_LOOSE_IN_PLACE) placed.push(...loose.splice(0));
  placed.sort((a, b) => a - b);

  const layout = placed.length <= MOST_FOR_DAGRE ? byDagre(request, placed) : layered(request, placed);
  // What goes round has to come back: in columns it would have to cross them all.
  const shaped = request.round.length > 0 ? layout : wrapped(request, placed, layout);
  addRounds(request, placed, shaped);
  addBlock(request, loose, shaped);
  addAside(request, request.aside, shaped);
  return shaped;
}

function byDagre(request: LayoutRequest, placed: readonly number[]): Layout {
  const layout = emptyLayout(request);
  if (placed.length === 0) return layout;
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ ranker: "tight-tree", nodesep: GAP, ranksep: LAYER_GAP, edgesep: 12 });
  const inside = new Set(placed);
  for (const i of placed) {
    const [width, height] = request.sizes[i];
    graph.setNode(String(i), { width, height });
  }
  const round = new Set(request.round);
  request.edges.forEach(([source, target, width, height], e) => {
    if (!inside.has(source) || !inside.has(target) || round.has(e)) return;
    // What runs inside is to be straight, rather than what only comes in or goes out.
    const label = { weight: 4, ...(width > 0 ? { width, height, labelpos: "c" as const } : {}) };
    graph.setEdge(String(source), String(target), label, `e${e}`);
  });
  if (request.row.length > 1) {
    // What is joined to one node, and that to all that it leads to, stands in one row.
    graph.setNode("row", { width: 1, height: 1 });
    const row = new Set(request.row);
    for (const i of row) graph.setEdge(String(i), "row", { weight: 8 }, "row");
    for (const [source, target] of request.edges) {
      if (row.has(source) && !row.has(target)) graph.setEdge("row", String(target), { weight: 1 }, "row");
    }
  }
  const ports: [readonly number[], string][] = [[request.entering, "in"], [request.leaving, "out"]];
  for (const [members, port] of ports) {
    const shown = members.filter((i) => inside.has(i));
    if (shown.length === 0 || shown.length > MOST_PORT_LINES) continue;
    graph.setNode(port, { width: 1, height: 1 });
    for (const i of shown) {
      if (port === "in") graph.setEdge(port, String(i), {}, port);
      else graph.setEdge(String(i), port, {}, port);
    }
    if (round.size === 0) continue;
    // A loop's variables come first, and leave it: above and below all else, or lines would run across that.
    const side = port === "in" ? 1 : 0;
    const joined = new Set(request.edges.flatMap((edge, e) => (round.has(e) ? [] : [edge[side]])));
    for (const i of placed) {
      if (joined.has(i)) continue;
      if (port === "in") graph.setEdge(port, String(i), { weight: 0 }, "border");
      else graph.setEdge(String(i), port, { weight: 0 }, "border");
    }
  }
  dagre.layout(graph);

  for (const i of placed) {
    const node = graph.node(String(i)) as { x: number; y: number };
    layout.x[i] = node.x;
    layout.y[i] = node.y;
  }
  interface Drawn { points?: { x: number; y: number }[]; x?: number; y?: number }
  const line = (drawn: Drawn | undefined): Line => (drawn?.points ?? []).flatMap(({ x, y }) => [x, y]);
  request.edges.forEach(([source, target, width], e) => {
    const drawn = graph.edge(String(source), String(target), `e${e}`) as Drawn | undefined;
    if (!drawn) return;
    layout.edges[e].points = line(drawn);
    if (width > 0 && drawn.x !== undefined && drawn.y !== undefined) {
      layout.edges[e].label = [drawn.x, drawn.y];
    }
  });
  request.entering.forEach((i, p) => {
    const drawn = graph.edge("in", String(i), "in") as Drawn | undefined;
    if (drawn) layout.entering[p] = line(drawn);
  });
  request.leaving.forEach((i, p) => {
    const drawn = graph.edge(String(i), "out", "out") as Drawn | undefined;
    if (drawn) layout.leaving[p] = line(drawn);
  });
  normalise(request, placed, layout);
  return layout;
}

/** Take the edges that go round up on the right, each on a lane of its own. */
function addRounds(request: LayoutRequest, placed: readonly number[], layout: Layout): void {
  const inside = new Set(placed);
  const edges = request.round.filter((e) => inside.has(request.edges[e][0]) && inside.has(request.edges[e][1]));
  if (edges.length === 0) return;
  // What goes in furthest to the right goes on the innermost lane, so that no two cross.
  edges.sort((a, b) => layout.x[request.edges[b][1]] - layout.x[request.edges[a][1]] || a - b);
  const right = layout.width + CLEAR;
  const apart = Math.min(LANE, (LAYER_GAP - CLEAR) / edges.length);
  const leaving = new Map<number, number>();
  for (const e of edges) leaving.set(request.edges[e][0], (leaving.get(request.edges[e][0]) ?? 0) + 1);
  const left = new Map<number, number>();
  edges.forEach((e, lane) => {
    const [source, target] = request.edges[e];
    const [width, height] = request.sizes[source];
    const nth = left.get(source) ?? 0;
    left.set(source, nth + 1);
    // From the right half of its lower border: what goes on inside leaves in the middle.
    const step = Math.min(LANE, (width / 2 - 12) / leaving.get(source)!);
    const from = layout.x[source] + width / 2 - 10 - nth * step;
    const start = layout.y[source] + height / 2;
    const end = layout.y[target] - request.sizes[target][1] / 2;
    // Between two layers there is nothing but lines.
    const [below, beside, above] = [start + 10 + lane * apart, right + lane * LANE, end - 12 - lane * apart];
    layout.edges[e] = {
      points: [from, start, from, below, beside, below, beside, above, layout.x[target], above, layout.x[target], end],
      square: true,
      label: null,
    };
  });
  normalise(request, placed, layout);
}

/** Put members that no edge places into rows below the others. */
function addBlock(request: LayoutRequest, members: readonly number[], layout: Layout): void {
  if (members.length === 0) return;
  const area = members.reduce((sum, i) => sum + (request.sizes[i][0] + GAP) * (request.sizes[i][1] + GAP), 0);
  const widest = members.reduce((most, i) => Math.max(most, request.sizes[i][0]), 0);
  const room = Math.max(layout.width, widest, Math.sqrt(area * 1.8));
  const top = layout.height > 0 ? layout.height + LAYER_GAP : 0;
  const [width, height] = rows(request, members, layout, 0, top, room);
  const shift = (Math.max(layout.width, width) - width) / 2;
  for (const i of members) layout.x[i] += shift;
  layout.width = Math.max(layout.width, width);
  layout.height = top + height;
}

/** Put members into a column, or several, to the right of the others. */
function addAside(request: LayoutRequest, members: readonly number[], layout: Layout): void {
  if (members.length === 0) return;
  const widest = members.reduce((most, i) => Math.max(most, request.sizes[i][0]), 0);
  const tall = members.reduce((sum, i) => sum + request.sizes[i][1] + GAP / 2, 0);
  const columns = Math.max(1, Math.min(members.length, Math.ceil(tall / Math.max(layout.height, 260))));
  const left = layout.width + (layout.width > 0 ? ASIDE_GAP : 0);
  const heading = 22;
  const [width, height] = rows(request, members, layout, left, heading, columns * (widest + GAP) - GAP, GAP / 2);
  layout.asideAt = left - ASIDE_GAP / 2;
  layout.width = left + width;
  layout.height = Math.max(layout.height, heading + height);
}

/** Fill rows from the left. */
function rows(
  request: LayoutRequest,
  members: readonly number[],
  layout: Layout,
  left: number,
  top: number,
  room: number,
  gap = GAP,
): [number, number] {
  let [x, y, tallest, width] = [0, 0, 0, 0];
  for (const i of members) {
    const [w, h] = request.sizes[i];
    if (x > 0 && x + w > room + 0.5) {
      x = 0;
      y += tallest + gap;
      tallest = 0;
    }
    layout.x[i] = left + x + w / 2;
    layout.y[i] = top + y + h / 2;
    tallest = Math.max(tallest, h);
    width = Math.max(width, x + w);
    x += w + GAP;
  }
  return [width, y + tallest];
}
