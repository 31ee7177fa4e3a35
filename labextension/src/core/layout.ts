// Where the members of one scope go: in layers, edges running down, each member as large as it is
// asked to be. Pure; runs in a worker.
//
// Small scopes are laid out by dagre; larger ones, which would take it too long, in plain layers.
// What no edge places goes into a block below. Long chains are cut into columns.

import dagre from "@dagrejs/dagre";

import { layered } from "./layered.js";
import { wrapped } from "./wrap.js";

export interface LayoutRequest {
  /** Width and height of each member. */
  readonly sizes: readonly (readonly [number, number])[];
  /** Source, target, and the room that a label needs: width and height, or zeros. */
  readonly edges: readonly (readonly [number, number, number, number])[];
  /** Members that take something from outside the scope, and that give something. */
  readonly entering: readonly number[];
  readonly leaving: readonly number[];
  /** Members to set aside. */
  readonly aside: readonly number[];
  /** Whether edges run to the right instead of down. */
  readonly sideways: boolean;
  /** Width over height of the room that there is for it. */
  readonly aspect: number;
}

/** Points of a line: x and y in turn. */
export type Line = number[];

export interface EdgeLine {
  points: Line;
  /** Whether it turns at right angles, as the lines between columns do. */
  square: boolean;
  /** Where its label has been given room: its centre. */
  label: [number, number] | null;
}

export interface Layout {
  width: number;
  height: number;
  /** The centres of the members. */
  x: number[];
  y: number[];
  edges: EdgeLine[];
  /** From the scope's border to members, and from members to it: parallel to the request's. */
  entering: (Line | null)[];
  leaving: (Line | null)[];
  /** Where those set aside begin, from the left, or from the top if sideways; null without any. */
  asideAt: number | null;
}

export const GAP = 26;
export const LAYER_GAP = 34;

const MOST_FOR_DAGRE = 130;
const MOST_PORT_LINES = 24;
const MOST_LOOSE_IN_PLACE = 6;
const ASIDE_GAP = 44;

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
  const shaped = wrapped(request, placed, layout);
  addBlock(request, loose, shaped);
  addAside(request, request.aside, shaped);
  return shaped;
}

/** A layout of nothing yet. */
export function emptyLayout(request: LayoutRequest): Layout {
  const count = request.sizes.length;
  return {
    width: 0,
    height: 0,
    x: new Array<number>(count).fill(0),
    y: new Array<number>(count).fill(0),
    edges: request.edges.map(() => ({ points: [], square: false, label: null })),
    entering: request.entering.map(() => null),
    leaving: request.leaving.map(() => null),
    asideAt: null,
  };
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
  request.edges.forEach(([source, target, width, height], e) => {
    if (!inside.has(source) || !inside.has(target)) return;
    // What runs inside is to be straight, rather than what only comes in or goes out.
    const label = { weight: 4, ...(width > 0 ? { width, height, labelpos: "c" as const } : {}) };
    graph.setEdge(String(source), String(target), label, `e${e}`);
  });
  const ports: [readonly number[], string][] = [[request.entering, "in"], [request.leaving, "out"]];
  for (const [members, port] of ports) {
    const shown = members.filter((i) => inside.has(i));
    if (shown.length === 0 || shown.length > MOST_PORT_LINES) continue;
    graph.setNode(port, { width: 1, height: 1 });
    for (const i of shown) {
      if (port === "in") graph.setEdge(port, String(i), {}, port);
      else graph.setEdge(String(i), port, {}, port);
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

/** Move a layout so that it begins at zero, and measure it. */
export function normalise(request: LayoutRequest, placed: readonly number[], layout: Layout): void {
  const box = extent(request, placed, layout);
  const [left, top, right, bottom] = box;
  for (const i of placed) {
    layout.x[i] -= left;
    layout.y[i] -= top;
  }
  for (const line of lines(layout)) {
    for (let i = 0; i < line.length; i += 2) {
      line[i] -= left;
      line[i + 1] -= top;
    }
  }
  for (const edge of layout.edges) {
    if (edge.label) edge.label = [edge.label[0] - left, edge.label[1] - top];
  }
  layout.width = right - left;
  layout.height = bottom - top;
}

function lines(layout: Layout): Line[] {
  const ports = [...layout.entering, ...layout.leaving].filter((line): line is Line => line !== null);
  return [...layout.edges.map((edge) => edge.points), ...ports];
}

function extent(request: LayoutRequest, placed: readonly number[], layout: Layout): [number, number, number, number] {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  const include = (x: number, y: number, halfWidth: number, halfHeight: number): void => {
    left = Math.min(left, x - halfWidth);
    right = Math.max(right, x + halfWidth);
    top = Math.min(top, y - halfHeight);
    bottom = Math.max(bottom, y + halfHeight);
  };
  for (const i of placed) include(layout.x[i], layout.y[i], request.sizes[i][0] / 2, request.sizes[i][1] / 2);
  layout.edges.forEach((edge, e) => {
    for (let i = 0; i < edge.points.length; i += 2) include(edge.points[i], edge.points[i + 1], 1, 0);
    const [, , width, height] = request.edges[e];
    if (edge.label) include(edge.label[0], edge.label[1], width / 2, height / 2);
  });
  for (const line of [...layout.entering, ...layout.leaving]) {
    for (let i = 0; line && i < line.length; i += 2) include(line[i], line[i + 1], 1, 0);
  }
  return left === Infinity ? [0, 0, 0, 0] : [left, top, right, bottom];
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

function transposedRequest(request: LayoutRequest): LayoutRequest {
  return {
    ...request,
    aspect: 1 / request.aspect,
    sizes: request.sizes.map(([width, height]) => [height, width] as const),
    edges: request.edges.map(([source, target, width, height]) => [source, target, height, width] as const),
  };
}

function transposed(layout: Layout): Layout {
  const turn = (line: Line): Line => line.map((_, i) => line[i ^ 1]);
  const turnPort = (line: Line | null): Line | null => (line ? turn(line) : null);
  return {
    width: layout.height,
    height: layout.width,
    x: layout.y,
    y: layout.x,
    edges: layout.edges.map((edge) => ({
      points: turn(edge.points),
      square: edge.square,
      label: edge.label ? [edge.label[1], edge.label[0]] : null,
    })),
    entering: layout.entering.map(turnPort),
    leaving: layout.leaving.map(turnPort),
    asideAt: layout.asideAt,
  };
}
