// The picture as SVG: on light paper, fetching nothing, names as text; and of what can be read where
// it is shown, as on a canvas.

import { LegendRow, Palette, mixed, roundLine } from "./colours.js";
import { Pen, arrowHead, trace } from "./curves.js";
import { BAR, BAR_INSET, BAR_UP, DETAIL_SIZE, LABEL_SIZE, TITLE_SIZE, isOpenable } from "./faces.js";
import { Hierarchy } from "./hierarchy.js";
import { Line } from "./layout.js";
import { Legible, nameBeyond } from "./legible.js";
import { textWidth } from "./letters.js";
import { DIFFERS, differenceMark, differences } from "./overlay.js";
import { Kind, Mark } from "./payload.js";
import { Room, roomsOf } from "./rooms.js";
import { Box, Scene, Sheet, Stroke } from "./scene.js";
import { counted, shownText } from "./words.js";

const MARGIN = 24;
const HEADING = 30;
const [ROW, SWATCH] = [20, 46]; // Of the legend.
const MARK_SIZE = 9;
const TINT = 0.5; // How strongly an opened scope tints what lies in it.
const FADED = 0.3;
const TO_BORDER = 0.55; // The opacity of lines that only lead to a scope's border.
const [PAPER, INK, FAINT, LINE, STALE, ACCENT] = ["#fbfcfd", "#1c2430", "#5d6878", "#8a94a3", "#c2410c", "#1f6feb"];

/** What is drawn: from 0, 0 on, so large. */
export interface Drawing {
  readonly parts: string;
  readonly width: number;
  readonly height: number;
}

/** A document of its own. */
export function sceneSvg(tree: Hierarchy, scene: Scene, sideways: boolean, palette: Palette): string {
  const { parts, width, height } = drawing(tree, scene, sideways, palette);
  const size = [width, height].map((each) => n(each + 2 * MARGIN));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size[0]}" height="${size[1]}" viewBox="0 0 ${size.join(" ")}" ` +
      `font-family="system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif">`,
    `<rect width="100%" height="100%" fill="${PAPER}"/><g transform="translate(${MARGIN} ${MARGIN})">`,
    parts,
    "</g></svg>",
  ].join("\n");
}

/**
 * The picture, with its legend below it.
 *
 * @param heading a line above it, or nothing.
 * @param room how wide it may be where it is shown, which decides what of it can be read.
 */
export function drawing(
  tree: Hierarchy,
  scene: Scene,
  sideways: boolean,
  palette: Palette,
  heading = "",
  room = Infinity,
): Drawing {
  const legend = legendOf(tree, palette);
  // What lies around it is as large on the page however small the picture is there.
  const unit = Math.max(1, scene.width / room);
  const widest = (words: readonly string[]): number => Math.max(0, ...words.map((each) => textWidth(each, unit * DETAIL_SIZE)));
  const second = unit * (SWATCH + 10) + widest(legend.map(({ label }) => label));
  const width = Math.max(scene.width, widest([heading]), legend.length > 0 ? second + widest(legend.map(({ about }) => about)) : 0);
  const top = heading ? unit * HEADING : 0;
  const pen = new Draughtsman(tree, palette, sideways, new Legible(Math.min(1, room / width)));
  const parts = [
    text(0, unit * 6, unit * DETAIL_SIZE, FAINT, heading),
    `<g transform="translate(${n((width - scene.width) / 2)} ${n(top)})">`,
    ...scene.sheets.flatMap((sheet) => pen.sheet(sheet)),
    "</g>",
    ...legend.map((row, i) => rowSvg(row, second, top + scene.height + unit * ROW * (i + 1.2), unit)),
  ];
  const height = top + scene.height + (legend.length > 0 ? unit * ROW * (legend.length + 0.5) : 0);
  return { parts: parts.filter(Boolean).join("\n"), width, height };
}

interface SignedRow extends LegendRow {
  /** What stands in place of colours: a line, or a mark. */
  readonly sign?: string;
}

/** What the colours say, the lines that cross between devices, and the marks. */
function legendOf(tree: Hierarchy, palette: Palette): SignedRow[] {
  const { overlay } = tree.data;
  const rows: SignedRow[] = [...palette.legend];
  if (!overlay || rows.length === 0) return rows;
  const differing = differences(tree, overlay)[tree.root];
  const row = (sign: string, label: string, about: string): SignedRow => ({ swatch: [], label, about, sign });
  if (overlay.crossTensor.length > 0) rows.push(row("line", "to another device", "with the bytes that go over"));
  if (differing > 0) rows.push(row(DIFFERS, "elsewhere in the other plan", counted(differing, "operation")));
  return rows;
}

/** A line of the legend, of so large pixels; what is said of it begins at `second`. */
function rowSvg({ swatch, label, about, sign }: SignedRow, second: number, y: number, unit: number): string {
  const swatches = unit * (SWATCH - 10);
  const wide = swatches / swatch.length;
  const colours = swatch.map((colour, i) => rect(i * wide, y - 5 * unit, wide + 0.1, 10 * unit, `fill="${colour}"`));
  const crossing = `<path d="M0 ${n(y)}h${n(swatches)}" stroke="${INK}" stroke-width="${n(2.4 * unit)}"/>`;
  const signed = sign === "line" ? crossing : sign ? mark(sign, (swatches + markWidth(sign, unit)) / 2, y, PAPER, INK, unit) : "";
  const words = (x: number, colour: string, said: string): string => text(x, y + 4 * unit, unit * DETAIL_SIZE, colour, said);
  return colours.join("") + signed + words(unit * SWATCH, INK, label) + words(second, FAINT, about);
}

/** Draws what is on sheets, outer ones first. */
class Draughtsman {
  /** The colour that lies behind a scope's members. */
  readonly #grounds = new Map<number, string>();
  readonly #differing: Int32Array | null;

  constructor(readonly tree: Hierarchy, readonly palette: Palette, readonly sideways: boolean, readonly legible: Legible) {
    this.#differing = tree.data.overlay && differences(tree, tree.data.overlay);
    this.#grounds.set(tree.root, PAPER);
  }

  sheet({ scope, box, rule, strokes, closed }: Sheet): string[] {
    const { names, labels } = this.legible;
    const parts = box ? [this.#opened(box)] : [];
    const ground = this.#grounds.get(scope)!;
    if (rule) parts.push(this.#rule(rule));
    for (const stroke of strokes) parts.push(this.#faded(stroke.ends, this.#stroke(stroke)));
    for (const stroke of labels ? strokes : []) if (stroke.labelAt) parts.push(this.#faded(stroke.ends, label(stroke, ground)));
    for (const each of closed) parts.push(this.#faded([each.node], this.#closed(each)));
    const rooms = names ? null : roomsOf(closed);
    for (const each of rooms ? closed : []) parts.push(this.#faded([each.node], this.#nameBeyond(each, rooms!.get(each)!, ground)));
    return parts;
  }

  /** Something of nodes, faint where something else stands out. */
  #faded(nodes: readonly number[], parts: string): string {
    return nodes.every((node) => this.tree.needed[node]) ? parts : parts && `<g opacity="${FADED}">${parts}</g>`;
  }

  #opened(box: Box): string {
    const { x, y, width, height, node, face } = box;
    const { fill } = this.palette.paintOf(node, false);
    const ground = mixed(this.#grounds.get(this.tree.parent[node])!, fill, TINT);
    this.#grounds.set(node, ground);
    const detail = text(x + 20 + textWidth(face.title, TITLE_SIZE), y + 19, DETAIL_SIZE, FAINT, face.detail);
    const words = text(x + 12, y + 19, TITLE_SIZE, INK, face.title, "", ' font-weight="600"') + (this.legible.details ? detail : "");
    return this.#faded([node], `<g>${this.#title(node)}${rect(x, y, width, height, this.#look(node, 9, ground))}${words}</g>`);
  }

  #closed(box: Box): string {
    const { tree, legible } = this;
    const { x, y, width, height, face, node } = box;
    const { fill, strong } = this.palette.paintOf(node, false);
    const round = tree.kind[node] === Kind.Input || tree.kind[node] === Kind.Role ? height / 2 : 6;
    const look = this.#look(node, round, fill);
    const detailed = legible.details && face.detail !== "";
    const middle = x + width / 2;
    return [
      `<g>${this.#title(node)}`,
      // A second sheet behind it: there is more inside.
      legible.sheets && isOpenable(tree, node) ? rect(x + 3, y + 3, width, height, look) : "",
      rect(x, y, width, height, look),
      this.#bar(box),
      legible.names ? text(middle, detailed ? y + height / 2 - 2 : y + height / 2 + 4.5, TITLE_SIZE, INK, face.title, "middle") : "",
      detailed ? text(middle, y + height / 2 + 13, DETAIL_SIZE, strong ? INK : FAINT, face.detail, "middle") : "",
      this.#marks(box),
      "</g>",
    ].join("");
  }

  #title(node: number): string {
    return `<title>${escaped(this.tree.called(node))}</title>`;
  }

  /** The corners, the ground and the outline of a box. */
  #look(node: number, round: number, fill: string): string {
    const { tree } = this;
    const retired = node < tree.data.operations && tree.data.retired[node] === 1;
    const [line, dash] = tree.stale[node] > 0 ? [STALE, "5 3"] : [this.palette.paintOf(node, false).line, retired ? "2 3" : ""];
    return `rx="${n(round)}" fill="${fill}" stroke="${line}"${dash ? ` stroke-dasharray="${dash}"` : ""}`;
  }

  #bar({ node, x, y, width, height }: Box): string {
    let left = x + BAR_INSET;
    return this.palette
      .barOf(node, false)
      .map(({ colour, dash, part }) => {
        const wide = part * (width - 2 * BAR_INSET);
        const dashes = dash.length > 0 ? ` stroke-dasharray="${dash.join(" ")}"` : "";
        const line = `<path d="M${n(left)} ${n(y + height - BAR_UP)}h${n(wide)}" stroke="${colour}" stroke-width="${BAR}"${dashes}/>`;
        left += wide;
        return line;
      })
      .join("");
  }

  /** On its upper border: what the run does with it, and whether it differs from another picture. */
  #marks({ node, x, y, width }: Box): string {
    const { tree } = this;
    const marks = tree.data.marked ? tree.needed[node] : 0;
    const words = marks & Mark.Fetched ? "fetched" : marks & Mark.Fed ? "fed" : "";
    const right = x + width - 6;
    const differs = differenceMark(tree, this.#differing, node);
    const left = words ? right - markWidth(words) - 4 : right;
    return (words ? mark(words, right, y, ACCENT, PAPER) : "") + (differs ? mark(differs, left, y, PAPER, INK) : "");
  }

  /** The name of a small box, which may reach beyond it. */
  #nameBeyond(box: Box, room: Room, ground: string): string {
    const name = nameBeyond(box, room, this.legible, textWidth);
    if (!name) return "";
    const { title, size, x, y, isOnLines } = name;
    const halo = isOnLines ? ` stroke="${ground}" stroke-width="${n(3 / this.legible.scale)}" paint-order="stroke"` : "";
    return text(x, y, size, INK, title, "middle", halo);
  }

  #rule(rule: readonly [number, number, number, number]): string {
    const [ax, ay, bx, by] = rule;
    const line = `<path d="M${n(ax)} ${n(ay)}L${n(bx)} ${n(by)}" stroke="${LINE}" stroke-dasharray="2 5" fill="none"/>`;
    const at = ax === bx ? ([ax + 22, ay + 11] as const) : ([ax, ay + 14] as const);
    return line + (this.legible.details ? text(...at, DETAIL_SIZE, FAINT, "set aside") : "");
  }

  #stroke({ points, square, width, crossing, round, control, edge }: Stroke): string {
    const pen = new PathPen();
    trace(pen, points, square, this.sideways);
    const colour = crossing ? INK : round ? roundLine(false) : LINE;
    const dash = control ? ' stroke-dasharray="3 4"' : "";
    const pale = edge ? "" : ` opacity="${TO_BORDER}"`;
    const line = `<path d="${pen.path}" fill="none" stroke="${colour}" stroke-width="${n(width)}"${dash}${pale}/>`;
    return line + (this.legible.heads ? headSvg(points, width, colour, pale) : "");
  }
}

function headSvg(points: Line, width: number, colour: string, pale: string): string {
  const [x, y, ax, ay, bx, by] = arrowHead(points, 5 + width).map(n);
  return `<path d="M${x} ${y}L${ax} ${ay}L${bx} ${by}z" fill="${colour}"${pale}/>`;
}

function label({ crossing, label: words, labelAt }: Stroke, ground: string): string {
  const [x, y] = labelAt!;
  const wide = textWidth(words, LABEL_SIZE) + 6;
  const [ink, weight] = crossing ? [INK, ' font-weight="600"'] : [FAINT, ""];
  const behind = rect(x - wide / 2, y - LABEL_SIZE / 2 - 1.5, wide, LABEL_SIZE + 3, `fill="${ground}"`);
  return behind + text(x, y + 3.5, LABEL_SIZE, ink, words, "middle", weight);
}

function markWidth(words: string, unit = 1): number {
  return textWidth(words, unit * MARK_SIZE) + 12 * unit;
}

/** A mark that ends at a place of a border; its frame is as its words, or as its ground where that is strong. */
function mark(words: string, right: number, y: number, fill: string, ink: string, unit = 1): string {
  const wide = markWidth(words, unit);
  const frame = `rx="${n(6.5 * unit)}" fill="${fill}" stroke="${fill === PAPER ? ink : fill}"`;
  const said = text(right - wide / 2, y + 2.8 * unit, unit * MARK_SIZE, ink, words, "middle", ' font-weight="600"');
  return rect(right - wide, y - 7 * unit, wide, 13 * unit, frame) + said;
}

function rect(x: number, y: number, width: number, height: number, more: string): string {
  return `<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" ${more}/>`;
}

function text(x: number, y: number, size: number, fill: string, words: string, anchor = "", more = ""): string {
  if (!words) return "";
  const anchored = anchor ? ` text-anchor="${anchor}"` : "";
  return `<text x="${n(x)}" y="${n(y)}" font-size="${n(size)}" fill="${fill}"${anchored}${more}>${escaped(words)}</text>`;
}

class PathPen implements Pen {
  path = "";
  moveTo(x: number, y: number): void {
    this.path += `M${n(x)} ${n(y)}`;
  }
  lineTo(x: number, y: number): void {
    this.path += `L${n(x)} ${n(y)}`;
  }
  quadraticCurveTo(cx: number, cy: number, x: number, y: number): void {
    this.path += `Q${n(cx)} ${n(cy)} ${n(x)} ${n(y)}`;
  }
  bezierCurveTo(ax: number, ay: number, bx: number, by: number, x: number, y: number): void {
    this.path += `C${n(ax)} ${n(ay)} ${n(bx)} ${n(by)} ${n(x)} ${n(y)}`;
  }
}

function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}

const MARKS: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function escaped(words: string): string {
  return shownText(words).replace(/[&<>"]/g, (each) => MARKS[each]);
}
