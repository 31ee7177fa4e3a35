// What a layout of the members of one scope is: what is asked for, and where everything goes.

export interface LayoutRequest {
  /** Width and height of each member. */
  readonly sizes: readonly (readonly [number, number])[];
  /** Source, target, and the room that a label needs: width and height, or zeros. */
  readonly edges: readonly (readonly [number, number, number, number])[];
  /** The edges, by their places, that go round, beside everything: they do not say what comes first. */
  readonly round: readonly number[];
  /** Members that stand in one row, if they can. */
  readonly row: readonly number[];
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

/** The request for what, turned, is the layout to the right. */
export function transposedRequest(request: LayoutRequest): LayoutRequest {
  return {
    ...request,
    aspect: 1 / request.aspect,
    sizes: request.sizes.map(([width, height]) => [height, width] as const),
    edges: request.edges.map(([source, target, width, height]) => [source, target, height, width] as const),
  };
}

/** A layout with its axes exchanged. */
export function transposed(layout: Layout): Layout {
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
