// Lines as curves: what a canvas and an SVG path both draw.

import { Line } from "./layout.js";

/** What draws: a canvas's path, or what writes an SVG path. */
export interface Pen {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
  quadraticCurveTo(cx: number, cy: number, x: number, y: number): void;
  bezierCurveTo(ax: number, ay: number, bx: number, by: number, x: number, y: number): void;
}

const CORNER = 9;

/** Draw a line: smooth, or with rounded right angles. */
export function trace(pen: Pen, points: Line, square: boolean, sideways: boolean): void {
  const count = points.length / 2;
  if (count < 2) return;
  if (square) traceSquare(pen, points);
  else if (count === 2) traceStraight(pen, points, sideways);
  else traceSmooth(pen, points);
}

/** Between two points, leaving and arriving in the direction of the flow. */
function traceStraight(pen: Pen, [ax, ay, bx, by]: Line, sideways: boolean): void {
  pen.moveTo(ax, ay);
  if (sideways) pen.bezierCurveTo((ax + bx) / 2, ay, (ax + bx) / 2, by, bx, by);
  else pen.bezierCurveTo(ax, (ay + by) / 2, bx, (ay + by) / 2, bx, by);
}

/** A B-spline through the ends. */
function traceSmooth(pen: Pen, points: Line): void {
  const count = points.length / 2;
  pen.moveTo(points[0], points[1]);
  const knot = (i: number): [number, number] => {
    const at = Math.min(count - 1, Math.max(0, i)) * 2;
    return [points[at], points[at + 1]];
  };
  let [x0, y0] = knot(0);
  let [x1, y1] = knot(1);
  pen.lineTo((5 * x0 + x1) / 6, (5 * y0 + y1) / 6);
  for (let i = 2; i < count; i++) {
    const [x, y] = knot(i);
    pen.bezierCurveTo((2 * x0 + x1) / 3, (2 * y0 + y1) / 3, (x0 + 2 * x1) / 3, (y0 + 2 * y1) / 3, (x0 + 4 * x1 + x) / 6, (y0 + 4 * y1 + y) / 6);
    [x0, y0, x1, y1] = [x1, y1, x, y];
  }
  pen.bezierCurveTo((2 * x0 + x1) / 3, (2 * y0 + y1) / 3, (x0 + 2 * x1) / 3, (y0 + 2 * y1) / 3, (x0 + 5 * x1) / 6, (y0 + 5 * y1) / 6);
  pen.lineTo(x1, y1);
}

function traceSquare(pen: Pen, points: Line): void {
  const last = points.length - 2;
  pen.moveTo(points[0], points[1]);
  for (let i = 2; i < last; i += 2) {
    const [px, py, x, y, nx, ny] = points.slice(i - 2, i + 4);
    const before = Math.min(CORNER, Math.hypot(x - px, y - py) / 2);
    const after = Math.min(CORNER, Math.hypot(nx - x, ny - y) / 2);
    const from = towards(x, y, px, py, before);
    const to = towards(x, y, nx, ny, after);
    pen.lineTo(from[0], from[1]);
    pen.quadraticCurveTo(x, y, to[0], to[1]);
  }
  pen.lineTo(points[last], points[last + 1]);
}

function towards(x: number, y: number, tx: number, ty: number, by: number): [number, number] {
  const length = Math.hypot(tx - x, ty - y) || 1;
  return [x + ((tx - x) * by) / length, y + ((ty - y) * by) / length];
}

/** The three corners of the head of an arrow that ends a line. */
export function arrowHead(points: Line, size: number): Line {
  const last = points.length - 2;
  const [x, y] = [points[last], points[last + 1]];
  let [px, py] = [points[last - 2], points[last - 1]];
  if (Math.hypot(x - px, y - py) < 0.5 && last >= 4) [px, py] = [points[last - 4], points[last - 3]];
  const angle = Math.atan2(y - py, x - px);
  const corner = (turn: number): [number, number] => [x - size * Math.cos(angle + turn), y - size * Math.sin(angle + turn)];
  return [x, y, ...corner(0.42), ...corner(-0.42)];
}
