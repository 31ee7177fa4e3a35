// Draws a scene on a canvas: only what is in view, and only as fine as can be seen.

import { Paint, Palette, roundLine } from "../core/colours.js";
import { arrowHead, trace } from "../core/curves.js";
import { BAR, BAR_INSET, BAR_UP, DETAIL_SIZE, LABEL_SIZE, TITLE_SIZE, isOpenable } from "../core/faces.js";
import { Hierarchy } from "../core/hierarchy.js";
import { Legible, SMALLEST_NAME, fitting, isRead, nameBeyond } from "../core/legible.js";
import { Kind, Mark } from "../core/payload.js";
import { Box, Scene, Sheet, Stroke } from "../core/scene.js";
import { Focus } from "../core/selection.js";
import { Room, roomsOf } from "../core/rooms.js";
import { Theme } from "./theme.js";

export interface View {
  /** What is at the left top corner, in the scene's coordinates, and how large its unit is. */
  x: number;
  y: number;
  scale: number;
}

export interface Shown {
  readonly tree: Hierarchy;
  readonly scene: Scene;
  readonly palette: Palette;
  /** Whether something else stands out. */
  readonly isFaint: (node: number) => boolean;
  /** What stands on the border of a node that differs from another picture's; empty of others. */
  readonly differs: (node: number) => string;
  readonly theme: Theme;
  readonly sideways: boolean;
  readonly focus: Focus;
  /** What the pointer is over. */
  readonly hovered: Box | Stroke | null;
}

const FADED = 0.22;
const MOST_RELATIONS = 8;
const REACH = 6; // Pixels from a line at which it is meant.

export class Painter {
  readonly #context: CanvasRenderingContext2D;
  readonly #paints = new Map<number, Paint>();
  #paintsOf: unknown = null;
  #paths = new WeakMap<Stroke, Path2D>();
  readonly #rooms = new WeakMap<Sheet, ReadonlyMap<Box, Room>>();
  readonly #pairs = new WeakMap<Scene, ReadonlySet<string>>();
  readonly #grounds = new Map<number, string>();
  readonly #probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;

  constructor(readonly canvas: HTMLCanvasElement) {
    this.#context = canvas.getContext("2d")!;
  }

  /** Fit the canvas to its place; true if that changed it. */
  resize(): boolean {
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(this.canvas.clientWidth * ratio);
    const height = Math.round(this.canvas.clientHeight * ratio);
    if (this.canvas.width === width && this.canvas.height === height) return false;
    this.canvas.width = width;
    this.canvas.height = height;
    return true;
  }

  draw(shown: Shown, view: View): void {
    const { scene, theme } = shown;
    const context = this.#context;
    const legible = new Legible(view.scale);
    if (this.#paintsOf !== shown.palette) this.forgetPaints();
    this.#paintsOf = shown.palette;
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const unit = ratio * view.scale;
    context.setTransform(unit, 0, 0, unit, -view.x * unit, -view.y * unit);
    context.textBaseline = "alphabetic";
    context.lineJoin = "round";
    const sight = {
      left: view.x,
      top: view.y,
      right: view.x + this.canvas.width / unit,
      bottom: view.y + this.canvas.height / unit,
    };
    const inSight = (box: Box): boolean =>
      box.x - 4 < sight.right && box.x + box.width + 4 > sight.left && box.y - 4 < sight.bottom && box.y + box.height + 4 > sight.top;
    for (const sheet of scene.sheets) {
      if (sheet.box && !inSight(sheet.box)) continue;
      const ground = this.#groundOf(shown, sheet.scope);
      if (sheet.box) this.#ground(shown, sheet.box, legible);
      if (sheet.rule) this.#rule(theme, sheet.rule, legible);
      for (const stroke of sheet.strokes) {
        if (strokeInSight(stroke, sight)) this.#stroke(shown, stroke, legible);
      }
      for (const stroke of legible.labels ? sheet.strokes : []) {
        if (stroke.labelAt && strokeInSight(stroke, sight)) this.#label(shown, stroke, ground);
      }
      const closed = sheet.closed.filter(inSight);
      for (const box of closed) this.#box(shown, box, legible);
      if (!legible.names) {
        const rooms = this.#roomsOf(sheet);
        for (const box of closed) this.#nameBeyond(shown, box, rooms.get(box)!, legible, ground);
      }
    }
    context.globalAlpha = 1;
    this.#relations(shown, view.scale);
  }

  /** The colours of nodes depend on the theme: forget them. */
  forgetPaints(): void {
    this.#paints.clear();
    this.#grounds.clear();
    this.#paths = new WeakMap();
  }

  #paint(shown: Shown, node: number): Paint {
    let found = this.#paints.get(node);
    if (!found) {
      found = shown.palette.paintOf(node, shown.theme.dark);
      this.#paints.set(node, found);
    }
    return found;
  }

  /** The colour that lies behind a scope's members: tints over the paper, as `#ground` lays them. */
  #groundOf(shown: Shown, scope: number): string {
    const { tree, theme } = shown;
    let known = this.#grounds.get(scope);
    if (known === undefined) {
      known = theme.paper;
      if (scope !== tree.root) {
        const probe = this.#probe;
        probe.globalAlpha = 1;
        probe.fillStyle = this.#groundOf(shown, tree.parent[scope]);
        probe.fillRect(0, 0, 1, 1);
        probe.globalAlpha = tintOf(theme);
        probe.fillStyle = this.#paint(shown, scope).fill;
        probe.fillRect(0, 0, 1, 1);
        const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
        known = `rgb(${red} ${green} ${blue})`;
      }
      this.#grounds.set(scope, known);
    }
    return known;
  }

  #ground(shown: Shown, box: Box, { scale, details }: Legible): void {
    const context = this.#context;
    const { theme } = shown;
    const paint = this.#paint(shown, box.node);
    context.globalAlpha = shown.isFaint(box.node) ? FADED : 1;
    this.#outline(box.x, box.y, box.width, box.height, 9);
    const alpha = context.globalAlpha;
    context.globalAlpha = alpha * tintOf(theme);
    context.fillStyle = paint.fill;
    context.fill();
    context.globalAlpha = alpha;
    this.#edgeOf(shown, box, paint, scale);
    context.textAlign = "left";
    const size = Math.min(Math.max(TITLE_SIZE, SMALLEST_NAME / scale), 22);
    context.font = `600 ${size}px ${theme.font}`;
    const title = fitting(box.face.title, box.width - 33, this.#measure);
    if (!isRead(size * scale) || !title) return;
    this.#sign(box.x + 14, box.y + 15, true, theme.faint);
    context.fillStyle = theme.ink;
    context.fillText(title, box.x + 25, box.y + 15 + 0.36 * size);
    if (!details) return;
    const width = this.#measure(title);
    context.font = `${DETAIL_SIZE}px ${theme.font}`;
    context.fillStyle = theme.faint;
    context.fillText(box.face.detail, box.x + 33 + width, box.y + 19.5);
  }

  #box(shown: Shown, box: Box, { scale, names, details, sheets }: Legible): void {
    const context = this.#context;
    const { theme, tree } = shown;
    const { node, x, y, width, height, face } = box;
    const paint = this.#paint(shown, node);
    context.globalAlpha = shown.isFaint(node) ? FADED : 1;
    const round = tree.kind[node] === Kind.Input || tree.kind[node] === Kind.Role ? height / 2 : 6;
    const openable = isOpenable(tree, node);
    if (openable && sheets) {
      // A second sheet behind it: there is more inside.
      this.#outline(x + 3, y + 3, width, height, round);
      context.fillStyle = paint.fill;
      context.fill();
      context.strokeStyle = paint.line;
      context.lineWidth = 0.8;
      context.stroke();
    }
    this.#outline(x, y, width, height, round);
    // What is behind a faded box must not shine through it.
    context.fillStyle = theme.paper;
    context.fill();
    context.fillStyle = paint.fill;
    context.fill();
    this.#edgeOf(shown, box, paint, scale);
    this.#bar(shown, box);
    const detailed = face.detail !== "" && details;
    if (names) this.#name(shown, box, detailed);
    this.#marks(shown, box);
    if (openable && names) this.#sign(x + 11, y + (detailed ? height / 2 - 6.5 : height / 2), false, theme.faint);
    if (!detailed) return;
    context.textAlign = "center";
    context.fillStyle = paint.strong ? theme.ink : theme.faint;
    context.font = `${DETAIL_SIZE}px ${theme.font}`;
    context.fillText(face.detail, x + width / 2, y + height / 2 + 12.5, width);
  }

  /** The name of a closed box, as large as the picture has it: boxes are made for that, of fonts that are usual. */
  #name({ theme, tree }: Shown, { node, x, y, width, height, face }: Box, detailed: boolean): void {
    const context = this.#context;
    context.textAlign = "center";
    context.fillStyle = theme.ink;
    context.font = `${tree.isScope(node) ? "500 " : ""}${TITLE_SIZE}px ${theme.font}`;
    const stacked = isOpenable(tree, node) ? 6 : 0;
    const at = [x + width / 2 + stacked, detailed ? y + height / 2 - 2.5 : y + height / 2 + 0.34 * TITLE_SIZE] as const;
    context.fillText(face.title, ...at, width - 2 * stacked);
  }

  /** The name of a small box, which may reach beyond it. */
  #nameBeyond(shown: Shown, box: Box, room: Room, legible: Legible, ground: string): void {
    const context = this.#context;
    const { theme, tree } = shown;
    const weight = tree.isScope(box.node) ? "500 " : "";
    context.textAlign = "center";
    let set = 0;
    const name = nameBeyond(box, room, legible, (text, size) => {
      if (size !== set) context.font = `${weight}${size}px ${theme.font}`;
      set = size;
      return this.#measure(text);
    });
    if (!name) return;
    const { title, x, y, isOnLines } = name;
    context.globalAlpha = shown.isFaint(box.node) ? FADED : 1;
    if (isOnLines) {
      context.strokeStyle = ground;
      context.lineWidth = 3 / legible.scale;
      context.strokeText(title, x, y);
    }
    context.fillStyle = theme.ink;
    context.fillText(title, x, y);
  }

  /** How wide a text is in the font that is set. */
  readonly #measure = (text: string): number => this.#context.measureText(text).width;

  #roomsOf(sheet: Sheet): ReadonlyMap<Box, Room> {
    let found = this.#rooms.get(sheet);
    if (!found) this.#rooms.set(sheet, (found = roomsOf(sheet.closed)));
    return found;
  }

  /** The bar at the bottom of a closed box: the share of each colour. */
  #bar(shown: Shown, { node, x, y, width, height }: Box): void {
    const context = this.#context;
    let left = x + BAR_INSET;
    for (const { colour, dash, part } of shown.palette.barOf(node, shown.theme.dark)) {
      const wide = part * (width - 2 * BAR_INSET);
      context.strokeStyle = colour;
      context.lineWidth = BAR;
      context.setLineDash([...dash]);
      context.beginPath();
      context.moveTo(left, y + height - BAR_UP);
      context.lineTo(left + wide, y + height - BAR_UP);
      context.stroke();
      left += wide;
    }
    context.setLineDash([]);
  }

  /** On its upper border: what the run does with it, and whether it differs from another picture. */
  #marks(shown: Shown, box: Box): void {
    const { tree, theme } = shown;
    const marks = tree.data.marked ? tree.needed[box.node] : 0;
    const words = marks & Mark.Fetched ? "fetched" : marks & Mark.Fed ? "fed" : "";
    const right = this.#mark(theme, words, box.x + box.width - 6, box.y, theme.accent, theme.paper, theme.accent);
    this.#mark(theme, shown.differs(box.node), right, box.y, theme.paper, theme.ink, theme.ink);
  }

  /** A mark that ends at a place of a border; where another may end to its left. */
  #mark(theme: Theme, words: string, right: number, y: number, fill: string, ink: string, line: string): number {
    if (!words) return right;
    const context = this.#context;
    context.font = `600 9px ${theme.font}`;
    const width = context.measureText(words).width + 10;
    context.beginPath();
    context.roundRect(right - width, y - 7, width, 13, 6.5);
    context.fillStyle = fill;
    context.fill();
    context.strokeStyle = line;
    context.lineWidth = 1;
    context.stroke();
    context.fillStyle = ink;
    context.textAlign = "center";
    context.fillText(words, right - width / 2, y + 2.8);
    return right - width - 4;
  }

  /** A small triangle: closed things point to the right, opened ones down. */
  #sign(x: number, y: number, opened: boolean, colour: string): void {
    const context = this.#context;
    context.fillStyle = colour;
    context.beginPath();
    if (opened) {
      context.moveTo(x - 4, y - 2);
      context.lineTo(x + 4, y - 2);
      context.lineTo(x, y + 3);
    } else {
      context.moveTo(x - 2, y - 4);
      context.lineTo(x + 3, y);
      context.lineTo(x - 2, y + 4);
    }
    context.fill();
  }

  #edgeOf(shown: Shown, box: Box, paint: Paint, scale: number): void {
    const context = this.#context;
    const { tree, theme } = shown;
    const node = box.node;
    const stale = tree.stale[node] > 0;
    const retired = node < tree.data.operations && tree.data.retired[node] === 1;
    context.strokeStyle = stale ? theme.stale : paint.line;
    context.lineWidth = Math.max(1, 0.7 / scale);
    context.setLineDash(stale ? [5, 3] : retired ? [2, 3] : []);
    context.stroke();
    context.setLineDash([]);
    const isSelected = shown.focus.nodes.has(node);
    if (isSelected || box === shown.hovered) {
      context.strokeStyle = theme.accent;
      context.lineWidth = (isSelected ? 2.4 : 1.4) / Math.min(1, scale);
      context.stroke();
    }
  }

  #outline(x: number, y: number, width: number, height: number, round: number): void {
    this.#context.beginPath();
    this.#context.roundRect(x, y, width, height, Math.min(round, height / 2));
  }

  #rule(theme: Theme, [ax, ay, bx, by]: readonly [number, number, number, number], { scale, details }: Legible): void {
    const context = this.#context;
    context.globalAlpha = 1;
    context.beginPath();
    context.moveTo(ax, ay);
    context.lineTo(bx, by);
    context.strokeStyle = theme.border;
    context.lineWidth = 1 / Math.min(1, scale);
    context.setLineDash([2, 5]);
    context.stroke();
    context.setLineDash([]);
    if (!details) return;
    context.fillStyle = theme.faint;
    context.font = `${DETAIL_SIZE}px ${theme.font}`;
    context.textAlign = "left";
    if (ax === bx) context.fillText("set aside", ax + 22, ay + 11);
    else context.fillText("set aside", ax, ay + 14);
  }

  #stroke(shown: Shown, stroke: Stroke, { scale, heads }: Legible): void {
    const context = this.#context;
    const { theme } = shown;
    const touched = isTouched(shown, stroke);
    context.globalAlpha = stroke.ends.some(shown.isFaint) ? FADED : 1;
    context.strokeStyle = touched ? theme.accent : stroke.crossing ? theme.ink : stroke.round ? roundLine(theme.dark) : theme.line;
    context.fillStyle = context.strokeStyle;
    context.lineWidth = Math.max(stroke.width + (touched ? 0.6 : 0), 0.6 / scale);
    if (stroke.control) context.setLineDash([3, 4]);
    if (stroke.edge === null && !touched) context.globalAlpha *= 0.55;
    context.stroke(this.#pathOf(stroke, shown.sideways));
    context.setLineDash([]);
    if (!heads) return;
    const [x, y, ax, ay, bx, by] = arrowHead(stroke.points, 5 + stroke.width);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(ax, ay);
    context.lineTo(bx, by);
    context.fill();
  }

  #pathOf(stroke: Stroke, sideways: boolean): Path2D {
    let path = this.#paths.get(stroke);
    if (!path) {
      path = new Path2D();
      trace(path, stroke.points, stroke.square, sideways);
      this.#paths.set(stroke, path);
    }
    return path;
  }

  /** The line of an edge that passes near a point of the picture; of inner scopes first. */
  strokeAt(scene: Scene, sideways: boolean, x: number, y: number, scale: number): Stroke | null {
    const context = this.#context;
    const reach = REACH / scale;
    const near = { left: x - reach, top: y - reach, right: x + reach, bottom: y + reach };
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.lineWidth = 2 * reach;
    const isNear = (stroke: Stroke): boolean =>
      stroke.edge !== null && strokeInSight(stroke, near) && context.isPointInStroke(this.#pathOf(stroke, sideways), x, y);
    let found: Stroke | null = null;
    for (let i = scene.sheets.length - 1; i >= 0 && !found; i--) found = scene.sheets[i].strokes.find(isNear) ?? null;
    context.restore();
    return found;
  }

  #label(shown: Shown, stroke: Stroke, ground: string): void {
    const context = this.#context;
    const { theme } = shown;
    context.globalAlpha = stroke.ends.some(shown.isFaint) ? FADED : 1;
    context.font = `${stroke.crossing ? "600 " : ""}${LABEL_SIZE}px ${theme.font}`;
    context.textAlign = "center";
    const [x, y] = stroke.labelAt!;
    const width = context.measureText(stroke.label).width + 6;
    context.fillStyle = ground;
    context.fillRect(x - width / 2, y - LABEL_SIZE / 2 - 1.5, width, LABEL_SIZE + 3);
    context.fillStyle = isTouched(shown, stroke) ? theme.accent : stroke.crossing ? theme.ink : theme.faint;
    context.fillText(stroke.label, x, y + 3.5);
  }

  /** Outlines around what the selection is joined with, and lines where no line of the picture shows it. */
  #relations(shown: Shown, scale: number): void {
    const { scene, focus, theme } = shown;
    if (focus.joined.size === 0) return;
    const context = this.#context;
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.3 / Math.min(1, scale);
    context.globalAlpha = 0.6;
    for (const node of focus.joined) {
      const box = scene.boxes.get(node);
      if (!box) continue;
      this.#outline(box.x - 2, box.y - 2, box.width + 4, box.height + 4, 8);
      context.stroke();
    }
    const drawn = this.#drawn(scene);
    const missing = focus.links.flatMap(([source, target]) => {
      const [from, to] = [scene.boxes.get(source), scene.boxes.get(target)];
      // A line across everything to gradients that are set aside tells nobody anything.
      if (!from || !to || from.aside || to.aside || drawn.has(`${source} ${target}`)) return [];
      return [[from, to] as const];
    });
    // More lines than these would hide what they lead to; the outlines tell it all the same.
    if (missing.length <= MOST_RELATIONS) {
      context.setLineDash([6, 4]);
      for (const [source, target] of missing) this.#relation(source, target);
      context.setLineDash([]);
    }
    context.globalAlpha = 1;
  }

  /** The pairs of nodes that a line of the picture joins. */
  #drawn(scene: Scene): ReadonlySet<string> {
    let found = this.#pairs.get(scene);
    if (!found) {
      const edges = scene.sheets.flatMap((sheet) => sheet.strokes.flatMap((stroke) => stroke.edge ?? []));
      found = new Set(edges.map(({ source, target }) => `${source} ${target}`));
      this.#pairs.set(scene, found);
    }
    return found;
  }

  /** A curve from one box to another, between the sides that face each other. */
  #relation(from: Box, to: Box): void {
    const context = this.#context;
    context.beginPath();
    const right = to.x >= from.x + from.width;
    if (right || to.x + to.width <= from.x) {
      const [ax, ay] = [right ? from.x + from.width : from.x, from.y + from.height / 2];
      const [bx, by] = [right ? to.x : to.x + to.width, to.y + to.height / 2];
      context.moveTo(ax, ay);
      context.bezierCurveTo((ax + bx) / 2, ay, (ax + bx) / 2, by, bx, by);
    } else {
      const down = from.y < to.y;
      const [ax, ay] = [from.x + from.width / 2, down ? from.y + from.height : from.y];
      const [bx, by] = [to.x + to.width / 2, down ? to.y : to.y + to.height];
      context.moveTo(ax, ay);
      context.bezierCurveTo(ax, (ay + by) / 2, bx, (ay + by) / 2, bx, by);
    }
    context.stroke();
  }
}

/** How strongly an opened scope tints what lies in it. */
function tintOf(theme: Theme): number {
  return theme.dark ? 0.42 : 0.5;
}

function isTouched(shown: Shown, stroke: Stroke): boolean {
  return stroke === shown.hovered || shown.focus.touches(stroke.ends, stroke.edge?.tensors ?? []);
}

interface Sight {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

function strokeInSight({ points }: Stroke, sight: Sight): boolean {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < points.length; i += 2) {
    left = Math.min(left, points[i]);
    right = Math.max(right, points[i]);
    top = Math.min(top, points[i + 1]);
    bottom = Math.max(bottom, points[i + 1]);
  }
  return left < sight.right && right > sight.left && top < sight.bottom && bottom > sight.top;
}
