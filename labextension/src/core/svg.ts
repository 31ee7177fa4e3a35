// The picture as an SVG document of its own: on light paper, fetching nothing, names as text.

import { LegendRow, Palette, roundLine } from "./colours.js";
import { Pen, arrowHead, trace } from "./curves.js";
import { BAR, BAR_INSET, BAR_UP, DETAIL_SIZE, LABEL_SIZE, TITLE_SIZE, isOpenable } from "./faces.js";
import { Hierarchy } from "./hierarchy.js";
import { Kind } from "./payload.js";
import { Box, Scene, Stroke } from "./scene.js";
import { shownText } from "./words.js";

const MARGIN = 24;
const [ROW, SWATCH, LETTER] = [20, 46, 6.4]; // Of the legend, in which letters are about so wide.
const [PAPER, INK, FAINT, LINE, STALE] = ["#fbfcfd", "#1c2430", "#5d6878", "#8a94a3", "#c2410c"];

export function sceneSvg(tree: Hierarchy, scene: Scene, sideways: boolean, palette: Palette): string {
  const { legend } = palette;
  const longest = Math.max(0, ...legend.map(({ label, about }) => label.length + about.length));
  const width = Math.max(scene.width, longest > 0 ? SWATCH + longest * LETTER + 30 : 0) + 2 * MARGIN;
  const height = scene.height + 2 * MARGIN + (legend.length > 0 ? ROW * (legend.length + 0.5) : 0);
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${n(width)}" height="${n(height)}" viewBox="0 0 ${n(width)} ${n(height)}" ` +
      `font-family="system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif">`,
    `<rect width="100%" height="100%" fill="${PAPER}"/><g transform="translate(${MARGIN} ${MARGIN})">`,
  ];
  const faded = (ends: readonly number[]): string => (ends.every((end) => tree.needed[end]) ? "" : ' opacity="0.3"');
  for (const sheet of scene.sheets) {
    if (sheet.box) parts.push(boxSvg(tree, palette, sheet.box, faded([sheet.box.node])));
    if (sheet.rule) {
      const [ax, ay, bx, by] = sheet.rule.map(n);
      const [x, y] = ax === bx ? [sheet.rule[0] + 22, sheet.rule[1] + 11] : [sheet.rule[0], sheet.rule[1] + 14];
      parts.push(`<path d="M${ax} ${ay}L${bx} ${by}" stroke="${LINE}" stroke-dasharray="2 5" fill="none"/>`);
      parts.push(`<text x="${n(x)}" y="${n(y)}" font-size="${DETAIL_SIZE}" fill="${FAINT}">set aside</text>`);
    }
    for (const stroke of sheet.strokes) parts.push(strokeSvg(stroke, sideways, faded(stroke.ends)));
    for (const box of sheet.closed) parts.push(boxSvg(tree, palette, box, faded([box.node])));
  }
  legend.forEach((row, i) => parts.push(rowSvg(row, scene.height + ROW * (i + 1.2))));
  parts.push("</g></svg>");
  return parts.join("\n");
}

/** A line of the legend, below the picture. */
function rowSvg({ swatch, label, about }: LegendRow, y: number): string {
  const wide = (SWATCH - 10) / swatch.length;
  const colours = swatch.map(
    (colour, i) => `<rect x="${n(i * wide)}" y="${n(y - 5)}" width="${n(wide + 0.1)}" height="10" fill="${colour}"/>`,
  );
  const words = `<tspan fill="${INK}" font-weight="600">${escaped(label)}</tspan><tspan dx="10" fill="${FAINT}">${escaped(about)}</tspan>`;
  return `${colours.join("")}<text x="${SWATCH}" y="${n(y + 4)}" font-size="${DETAIL_SIZE}">${words}</text>`;
}

function boxSvg(tree: Hierarchy, palette: Palette, box: Box, faded: string): string {
  const { fill, line, strong } = palette.paintOf(box.node, false);
  const { x, y, width, height, face, node } = box;
  const stale = tree.stale[node] > 0;
  const round = tree.kind[node] === Kind.Input || tree.kind[node] === Kind.Role ? height / 2 : 6;
  const shape =
    `width="${n(width)}" height="${n(height)}" rx="${n(round)}" fill="${fill}" ` +
    `stroke="${stale ? STALE : line}"${stale ? ' stroke-dasharray="5 3"' : ""}`;
  const sheetBehind =
    isOpenable(tree, node) && !box.opened ? `<rect x="${n(x + 3)}" y="${n(y + 3)}" ${shape}/>` : "";
  const title = `<title>${escaped(tree.name(node))}</title>`;
  if (box.opened) {
    const words = `<text x="${n(x + 12)}" y="${n(y + 19)}" font-size="${TITLE_SIZE}" font-weight="600" fill="${INK}">${escaped(face.title)}</text>`;
    return `<g${faded}>${title}<rect x="${n(x)}" y="${n(y)}" ${shape} fill-opacity="0.5"/>${words}</g>`;
  }
  const middle = x + width / 2;
  const titleY = face.detail ? y + height / 2 - 2 : y + height / 2 + 4.5;
  const detail = face.detail
    ? `<text x="${n(middle)}" y="${n(y + height / 2 + 13)}" font-size="${DETAIL_SIZE}" fill="${strong ? INK : FAINT}" text-anchor="middle">${escaped(face.detail)}</text>`
    : "";
  return (
    `<g${faded}>${title}${sheetBehind}<rect x="${n(x)}" y="${n(y)}" ${shape}/>${barSvg(palette, box)}` +
    `<text x="${n(middle)}" y="${n(titleY)}" font-size="${TITLE_SIZE}" fill="${INK}" text-anchor="middle">${escaped(face.title)}</text>${detail}</g>`
  );
}

function barSvg(palette: Palette, { node, x, y, width, height }: Box): string {
  let left = x + BAR_INSET;
  return palette
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

function strokeSvg(stroke: Stroke, sideways: boolean, faded: string): string {
  const pen = new PathPen();
  trace(pen, stroke.points, stroke.square, sideways);
  const head = arrowHead(stroke.points, 5 + stroke.width);
  const colour = stroke.crossing ? INK : stroke.round ? roundLine(false) : LINE;
  const dash = stroke.control ? ' stroke-dasharray="3 4"' : "";
  const arrow = `<path d="M${head.slice(0, 2).map(n).join(" ")}L${head.slice(2, 4).map(n).join(" ")}L${head.slice(4).map(n).join(" ")}Z" fill="${colour}"/>`;
  const label = stroke.labelAt
    ? `<text x="${n(stroke.labelAt[0])}" y="${n(stroke.labelAt[1] + 3.5)}" font-size="${LABEL_SIZE}" ` +
      `${stroke.crossing ? `fill="${INK}" font-weight="600"` : `fill="${FAINT}"`} ` +
      `text-anchor="middle" stroke="${PAPER}" stroke-width="4" paint-order="stroke">${escaped(stroke.label)}</text>`
    : "";
  return `<g${faded}><path d="${pen.path}" fill="none" stroke="${colour}" stroke-width="${n(stroke.width)}"${dash}/>${arrow}${label}</g>`;
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

function escaped(text: string): string {
  return shownText(text).replace(/[&<>"]/g, (mark) => MARKS[mark]);
}
