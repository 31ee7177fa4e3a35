// Long chains, cut into columns side by side, so that they neither become slivers nor leave the page.

import { Layout, LayoutRequest, Line, normalise } from "./layout.js";

const TALLER = 2.4; // So much taller than the room is in shape, it is cut ...
const TALL = 760; // ... if it is so tall at all.
const GUTTER = 46;
const LANE = 5;
const TURN = 14;

interface Column {
  top: number;
  bottom: number;
  left: number;
  right: number;
  /** How far it moves to the right. */
  shift: number;
}

/** The layout itself, or cut into columns if it is tall and narrow. */
export function wrapped(request: LayoutRequest, placed: readonly number[], layout: Layout): Layout {
  const { width, height } = layout;
  // A room that is wide has space for rows that are long, if edges run to the right.
  const tall = TALL * Math.max(1, 1 / request.aspect);
  if (height < tall || height * request.aspect < TALLER * width) return layout;
  const wanted = Math.round(Math.sqrt((request.aspect * height) / (width + GUTTER)));
  if (wanted < 2) return layout;
  const columns = cut(request, placed, layout, wanted);
  if (columns.length < 2) return layout;
  const columnOf = (y: number): number => Math.max(0, columns.findIndex((column) => y < column.bottom));
  measure(request, placed, layout, columns, columnOf);

  const at = new Map(placed.map((i) => [i, columnOf(layout.y[i])]));
  const lanes = new Map<number, number>();
  const tallest = columns.reduce((most, column) => Math.max(most, column.bottom - column.top), 0);
  const reroute = (line: Line, from: number, to: number): { line: Line; square: boolean } => {
    if (from === to) return { line: moved(line, columns[from]), square: false };
    const lane = lanes.get(Math.min(from, to)) ?? 0;
    lanes.set(Math.min(from, to), lane + 1);
    return { line: around(line, columns, from, to, ((lane % 6) - 2.5) * LANE, tallest), square: true };
  };
  request.edges.forEach(([source, target], e) => {
    const edge = layout.edges[e];
    const from = at.get(source);
    const to = at.get(target);
    if (edge.points.length === 0 || from === undefined || to === undefined) return;
    const { line, square } = reroute(edge.points, from, to);
    if (edge.label) {
      const column = columns[from];
      edge.label = square ? null : [edge.label[0] + column.shift, edge.label[1] - column.top];
    }
    edge.points = line;
    edge.square = square;
  });
  // What enters the scope enters at the first column, and leaves at the last.
  request.entering.forEach((i, p) => {
    const line = layout.entering[p];
    const column = at.get(i);
    layout.entering[p] = line && column === 0 ? moved(line, columns[0]) : null;
  });
  request.leaving.forEach((i, p) => {
    const line = layout.leaving[p];
    const column = at.get(i);
    layout.leaving[p] = line && column === columns.length - 1 ? moved(line, columns[column]) : null;
  });
  for (const i of placed) {
    const column = columns[at.get(i)!];
    layout.x[i] += column.shift;
    layout.y[i] -= column.top;
  }
  normalise(request, placed, layout);
  return layout;
}

/** Columns about equally tall, cut where no member is and few edges pass. */
function cut(request: LayoutRequest, placed: readonly number[], layout: Layout, wanted: number): Column[] {
  const gaps = gapsBetween(request, placed, layout);
  const passing = (y: number): number =>
    layout.edges.reduce((sum, { points }) => {
      const last = points.length - 1;
      return sum + Number(points.length > 0 && (points[1] < y) !== (points[last] < y));
    }, 0);
  const each = layout.height / wanted;
  const cuts: number[] = [];
  for (let c = 1; c < wanted; c++) {
    const ideal = c * each;
    let best: number | null = null;
    let cost = Infinity;
    for (const y of gaps) {
      const off = Math.abs(y - ideal) / each;
      if (off > 0.45 || (cuts.length > 0 && y <= cuts[cuts.length - 1])) continue;
      const price = passing(y) + 3 * off;
      if (price < cost) [best, cost] = [y, price];
    }
    if (best !== null) cuts.push(best);
  }
  const bounds = [0, ...cuts, layout.height + 1];
  return bounds.slice(1).map((bottom, i) => ({ top: bounds[i], bottom, left: Infinity, right: -Infinity, shift: 0 }));
}

/** The middles of the heights at which no member lies. */
function gapsBetween(request: LayoutRequest, placed: readonly number[], layout: Layout): number[] {
  const spans = placed
    .map((i) => [layout.y[i] - request.sizes[i][1] / 2, layout.y[i] + request.sizes[i][1] / 2])
    .sort((a, b) => a[0] - b[0]);
  const found: number[] = [];
  let end = Infinity;
  for (const [top, bottom] of spans) {
    if (top > end) found.push((end + top) / 2);
    end = end === Infinity ? bottom : Math.max(end, bottom);
  }
  return found;
}

/** How wide each column is, and so how far each moves. */
function measure(
  request: LayoutRequest,
  placed: readonly number[],
  layout: Layout,
  columns: Column[],
  columnOf: (y: number) => number,
): void {
  const include = (column: Column, x: number, half: number): void => {
    column.left = Math.min(column.left, x - half);
    column.right = Math.max(column.right, x + half);
  };
  for (const i of placed) include(columns[columnOf(layout.y[i])], layout.x[i], request.sizes[i][0] / 2);
  layout.edges.forEach(({ points, label }, e) => {
    for (let i = 0; i < points.length; i += 2) include(columns[columnOf(points[i + 1])], points[i], 1);
    if (label) include(columns[columnOf(label[1])], label[0], request.edges[e][2] / 2);
  });
  let x = 0;
  for (const column of columns) {
    column.shift = x - column.left;
    x += column.right - column.left + GUTTER;
  }
}

function moved(line: Line, column: Column): Line {
  return line.map((value, i) => (i % 2 === 0 ? value + column.shift : value - column.top));
}

/** A line from one column to another: down out of the one, through the gutter, into the other. */
function around(line: Line, columns: Column[], from: number, to: number, lane: number, tallest: number): Line {
  const last = line.length - 2;
  const [source, target] = [columns[from], columns[to]];
  const startX = line[0] + source.shift;
  const startY = line[1] - source.top;
  const endX = line[last] + target.shift;
  const endY = line[last + 1] - target.top;
  const gutterX = source.right + source.shift + (from < to ? GUTTER / 2 : -(source.right - source.left) - GUTTER / 2) + lane;
  const below = Math.min(startY + TURN, tallest + TURN) + lane / 2;
  const above = endY - TURN - lane / 2;
  if (Math.abs(from - to) === 1) return [startX, startY, startX, below, gutterX, below, gutterX, above, endX, above, endX, endY];
  // Past the columns between, above them all.
  const nextX = target.left + target.shift - GUTTER / 2 + lane;
  const over = -TURN - Math.abs(lane);
  return [
    startX, startY, startX, below, gutterX, below, gutterX, over, nextX, over, nextX, above, endX, above, endX, endY,
  ];
}
