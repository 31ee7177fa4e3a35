// The picture as boxes and lines: scopes that are opened hold their members, laid out each by itself.

import { Edge, ScopeEdges, carriedBytes, scopeEdges } from "./edges.js";
import { Face, LABEL_SIZE, TITLE_SIZE, faceOf } from "./faces.js";
import { Hierarchy } from "./hierarchy.js";
import { Layout, LayoutRequest, Line } from "./layout.js";
import { textWidth } from "./letters.js";
import { Crossing, Crossings } from "./overlay.js";
import { Kind } from "./payload.js";
import { byteSize, counted } from "./words.js";

/** What a person has chosen to see. */
export interface Choices {
  readonly opened: ReadonlySet<number>;
  /** Nodes that were set aside or brought back by hand. */
  readonly aside: ReadonlyMap<number, boolean>;
  readonly controls: boolean;
  readonly sideways: boolean;
}

export interface Box {
  readonly node: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly opened: boolean;
  readonly aside: boolean;
  readonly face: Face;
}

export interface Stroke {
  readonly points: Line;
  readonly square: boolean;
  readonly width: number;
  /** The edge that it stands for; null for what only leads to a scope's border. */
  readonly edge: Edge | null;
  readonly control: boolean;
  readonly round: boolean;
  /** What of it goes to other devices. */
  readonly crossing: Crossing | null;
  readonly label: string;
  readonly labelAt: readonly [number, number] | null;
  /** What it leaves and enters, for what stands out. */
  readonly ends: readonly number[];
}

/** What is drawn together: a scope's ground, then its lines, then its members. */
export interface Sheet {
  readonly scope: number;
  readonly box: Box | null;
  readonly strokes: Stroke[];
  readonly closed: Box[];
  /** The line before what is set aside: x, y, and where it ends. */
  readonly rule: readonly [number, number, number, number] | null;
}

export interface Scene {
  readonly width: number;
  readonly height: number;
  /** Outer scopes before inner ones. */
  readonly sheets: Sheet[];
  readonly boxes: ReadonlyMap<number, Box>;
}

const HEADER = 30;
const PADDING = 14;

const MOST_LABELS = 70;
const ASPECT = 1.5; // Width over height that layouts aim at.
const BOLDER = 1.12; // Bold letters are so much wider.
const CROSSING_WIDTH = 2.4;

/** A scope's members and edges, ready to be laid out. */
export interface Prepared {
  readonly members: readonly number[];
  readonly faces: readonly Face[];
  readonly edges: readonly Edge[];
  readonly crossings: readonly (Crossing | null)[];
  readonly labels: readonly string[];
  readonly request: LayoutRequest;
  readonly aside: ReadonlySet<number>;
}

export function isAside(tree: Hierarchy, choices: Choices, node: number): boolean {
  return choices.aside.get(node) ?? tree.aside[node] === 1;
}

/** Remembers the edges of scopes, which do not change while the graph and what is aside do not. */
export class EdgeCache {
  readonly #known = new Map<number, ScopeEdges>();
  readonly #unseen: Uint8Array;
  readonly #crossings: Crossings | null;

  constructor(readonly tree: Hierarchy, choices: Choices) {
    this.#crossings = tree.data.overlay && new Crossings(tree, tree.data.overlay);
    this.#unseen = tree.within((node) => isAside(tree, choices, node));
  }

  of(scope: number): ScopeEdges {
    let found = this.#known.get(scope);
    if (!found) {
      found = scopeEdges(this.tree, scope, this.#unseen);
      this.#known.set(scope, found);
    }
    return found;
  }

  /** What of an edge goes to other devices. */
  crossing(edge: Edge): Crossing | null {
    return this.#crossings?.of(edge) ?? null;
  }
}

/** The sizes and edges of a scope's members; `inner` has the layouts of the opened ones. */
export function prepare(
  cache: EdgeCache,
  scope: number,
  choices: Choices,
  inner: ReadonlyMap<number, Layout>,
): Prepared {
  const { tree } = cache;
  const members = tree.members(scope);
  const at = new Map(members.map((member, i) => [member, i]));
  const faces = members.map((member) => faceOf(tree, member));
  const sizes = members.map((member, i) => {
    const layout = inner.get(member);
    return layout ? openedSize(layout, faces[i]) : ([faces[i].width, faces[i].height] as const);
  });
  const found = cache.of(scope);
  const isShown = ({ source, target }: Edge): boolean => at.has(source) && at.has(target);
  const edges = found.within.filter((edge) => isShown(edge) && (edge.tensors.length > 0 || choices.controls));
  const crossings = edges.map((edge) => cache.crossing(edge));
  const aside = new Set(members.filter((member) => isAside(tree, choices, member)));
  const isSaid = (edge: Edge): boolean => {
    const isClosed = !inner.has(edge.source);
    return isClosed && tellsOf(tree, edge.source, faces[at.get(edge.source)!], edge.tensors);
  };
  // What a variable is at first is of the kind that it always is.
  const isFirst = (edge: Edge): boolean => tree.kind[edge.source] === Kind.Constant && tree.kind[edge.target] === Kind.Role;
  const hasLabel = edges.map(
    (edge, e) =>
      edge.tensors.length > 0 && !edge.round && !aside.has(edge.source) && !aside.has(edge.target) &&
      (crossings[e] !== null || (!isFirst(edge) && !isSaid(edge))),
  );
  const labelled = hasLabel.filter(Boolean).length <= MOST_LABELS;
  const labels = edges.map((edge, e) => (crossings[e] ? byteSize(crossings[e].bytes) : edgeLabel(tree, edge)));
  const index = (counts: Map<number, number>): number[] => [...counts.keys()].flatMap((member) => at.get(member) ?? []);
  const root = scope === tree.root;
  const request: LayoutRequest = {
    sizes,
    edges: edges.map((edge, e) => {
      const room = (labelled || crossings[e] !== null) && hasLabel[e];
      const width = room ? textWidth(labels[e], LABEL_SIZE) * (crossings[e] ? BOLDER : 1) + 10 : 0;
      return [at.get(edge.source)!, at.get(edge.target)!, width, room ? LABEL_SIZE + 4 : 0] as const;
    }),
    row: tree.kind[scope] === Kind.Loop ? members.flatMap((member, i) => (tree.kind[member] === Kind.Role ? [i] : [])) : [],
    round: edges.flatMap((edge, e) => (edge.round ? [e] : [])),
    entering: root ? [] : index(found.entering),
    leaving: root ? [] : index(found.leaving),
    aside: members.flatMap((member, i) => (aside.has(member) ? [i] : [])),
    sideways: choices.sideways,
    aspect: ASPECT,
  };
  return { members, faces, edges, crossings, labels, request, aside };
}

/** Whether what a closed node says of itself is all that an edge from it could say. */
function tellsOf(tree: Hierarchy, node: number, face: Face, tensors: readonly number[]): boolean {
  const op = tree.isScope(node) ? tree.own(node) : node;
  return op >= 0 && face.detail !== "" && tensors.length === 1 && tensors[0] === tree.data.outputStart[op];
}

function openedSize(layout: Layout, face: Face): readonly [number, number] {
  const heading = textWidth(face.title, TITLE_SIZE) + textWidth(face.detail, LABEL_SIZE) + 64;
  return [Math.max(layout.width + 2 * PADDING, heading), layout.height + HEADER + PADDING];
}

/** What an edge carries, in words. */
export function edgeLabel(tree: Hierarchy, edge: Edge): string {
  const { tensors } = edge;
  if (tensors.length === 0) return "";
  const { bytes, more } = carriedBytes(tree, tensors);
  const what = tensors.length === 1 ? tree.spec(tensors[0]) : counted(tensors.length, "tensor");
  return bytes > 0 ? `${what} · ${more ? "≥ " : ""}${byteSize(bytes)}` : what;
}

/** Put the layouts of the opened scopes together. */
export function compose(
  tree: Hierarchy,
  prepared: ReadonlyMap<number, Prepared>,
  layouts: ReadonlyMap<number, Layout>,
  choices: Choices,
): Scene {
  const sheets: Sheet[] = [];
  const boxes = new Map<number, Box>();
  const place = (scope: number, box: Box | null, left: number, top: number): void => {
    const { members, faces, edges, crossings, labels, request, aside } = prepared.get(scope)!;
    const layout = layouts.get(scope)!;
    const sheet: Sheet = { scope, box, strokes: [], closed: [], rule: ruleOf(layout, choices, left, top) };
    sheets.push(sheet);
    const shift = (line: Line): Line => line.map((value, i) => value + (i % 2 === 0 ? left : top));
    edges.forEach((edge, e) => {
      const { points, square, label } = layout.edges[e];
      if (points.length < 4) return;
      sheet.strokes.push({
        points: shift(points),
        square,
        width: Math.max(thickness(edge.tensors.length), crossings[e] ? CROSSING_WIDTH : 0),
        edge,
        crossing: crossings[e],
        control: edge.tensors.length === 0,
        round: edge.round,
        label: labels[e],
        labelAt: label ? [label[0] + left, label[1] + top] : null,
        ends: [edge.source, edge.target],
      });
    });
    if (box) sheet.strokes.push(...portStrokes(portsOf(layout, request, members), box, shift, choices.sideways));
    const inner: [number, Box][] = [];
    members.forEach((node, i) => {
      const [width, height] = request.sizes[i];
      const opened = layouts.has(node);
      const made: Box = {
        node,
        x: left + layout.x[i] - width / 2,
        y: top + layout.y[i] - height / 2,
        width,
        height,
        opened,
        aside: aside.has(node),
        face: faces[i],
      };
      boxes.set(node, made);
      if (opened) inner.push([node, made]);
      else sheet.closed.push(made);
    });
    for (const [node, made] of inner) {
      const free = made.width - 2 * PADDING - layouts.get(node)!.width;
      place(node, made, made.x + PADDING + free / 2, made.y + HEADER);
    }
  };
  place(tree.root, null, 0, 0);
  const { width, height } = layouts.get(tree.root)!;
  return { width, height, sheets, boxes };
}

interface Ports {
  readonly entering: [number, Line][];
  readonly leaving: [number, Line][];
}

function portsOf(layout: Layout, request: LayoutRequest, members: readonly number[]): Ports {
  const pairs = (indices: readonly number[], lines: readonly (Line | null)[]): [number, Line][] =>
    indices.flatMap((i, p) => {
      const line = lines[p];
      return line && line.length >= 4 ? [[members[i], line] as [number, Line]] : [];
    });
  return { entering: pairs(request.entering, layout.entering), leaving: pairs(request.leaving, layout.leaving) };
}

/** Lines between a scope's border, where what is outside comes in or goes out, and its members. */
function portStrokes(ports: Ports, box: Box, shift: (line: Line) => Line, sideways: boolean): Stroke[] {
  const made: Stroke[] = [];
  const add = (node: number, points: Line): void => {
    made.push({
      points, square: false, width: 1, edge: null, crossing: null, control: false, round: false, label: "", labelAt: null, ends: [box.node, node],
    });
  };
  for (const [node, line] of ports.entering) {
    const points = shift(line);
    add(node, [...(sideways ? [box.x, points[1]] : [points[0], box.y + HEADER - 6]), ...points]);
  }
  for (const [node, line] of ports.leaving) {
    const points = shift(line);
    const last = points.length - 2;
    add(node, [...points, ...(sideways ? [box.x + box.width, points[last + 1]] : [points[last], box.y + box.height])]);
  }
  return made;
}

function ruleOf(layout: Layout, choices: Choices, left: number, top: number): Sheet["rule"] {
  if (layout.asideAt === null) return null;
  return choices.sideways
    ? [left, top + layout.asideAt, left + layout.width, top + layout.asideAt]
    : [left + layout.asideAt, top, left + layout.asideAt, top + layout.height];
}

function thickness(tensors: number): number {
  return tensors <= 1 ? 1.2 : Math.min(5, 1.2 + 0.55 * Math.log2(tensors));
}
