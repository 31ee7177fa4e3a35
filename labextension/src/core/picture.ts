// The picture of a graph without a page: what a live view shows of it at first, as SVG.
//
// Flowbook runs this in Python, in an engine that knows the language and nothing else
// (`flowbook/widgets/javascript.py`).

import { Arranging, arrangingFirst, openedFirst } from "./arranging.js";
import { likenessPalette } from "./colours.js";
import { Hierarchy } from "./hierarchy.js";
import { Tints } from "./overlay.js";
import { overlayPalette } from "./overlay_colours.js";
import { decode } from "./payload.js";
import { layOut } from "./placing.js";
import { Choices, EdgeCache, Scene } from "./scene.js";
import { withSeries } from "./series.js";
import { drawing } from "./svg.js";
import { grouped } from "./words.js";

// What pages have beside the language, as far as it is needed: headers are ASCII, and dagre copies lists of names.
class AsciiDecoder {
  decode(bytes: Uint8Array): string {
    let text = "";
    for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
    return text;
  }
}
const page = globalThis as { TextDecoder?: unknown; structuredClone?: unknown };
page.TextDecoder ??= AsciiDecoder;
page.structuredClone ??= (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const MOST = 200; // More boxes side by side are for a view in which one can move.

interface Asked {
  readonly heading: string;
  /** What is said of loops and branches, by their names. */
  readonly ran: Readonly<Record<string, string>>;
  /** How wide the picture may be where it is shown. */
  readonly room: number;
}

/**
 * The picture, as JSON: a `Drawing`.
 *
 * @param payload the graph as pages get it, unpacked, in base64.
 * @param asked an `Asked`, as JSON.
 */
export function picture(payload: string, asked: string): string {
  const { heading, ran, room } = JSON.parse(asked) as Asked;
  const data = decode((Uint8Array as unknown as { fromBase64(text: string): Uint8Array<ArrayBuffer> }).fromBase64(payload).buffer);
  let [tree, words] = [new Hierarchy(data), heading];
  if (sideBySide(tree) > MOST) [tree, words] = [withSeries(data), `${heading}, with one box for each series of what is alike`];
  tree.ran = ran;
  let [scene, sideways]: [Scene, boolean] = [{ width: 0, height: 0, sheets: [], boxes: new Map() }, false];
  const boxes = sideBySide(tree);
  if (boxes <= MOST) ({ scene, sideways } = firstScene(tree));
  else words = `${heading}. ${grouped(boxes)} boxes side by side are too many for a picture.`;
  const palette = data.overlay ? overlayPalette(new Tints(tree, data.overlay, 0)) : likenessPalette(tree);
  return JSON.stringify(drawing(tree, scene, sideways, palette, words, room));
}

/** What a live view shows at first. */
export function firstScene(tree: Hierarchy): { scene: Scene; sideways: boolean } {
  const choices: Choices = { opened: openedFirst(tree), aside: new Map(), controls: false, sideways: false };
  return made(arrangingFirst(tree, new EdgeCache(tree, choices), choices));
}

/** What is made of layouts that are made at once. */
export function made<Made>(steps: Arranging<Made>): Made {
  let step = steps.next();
  while (!step.done) step = steps.next(layOut(step.value));
  return step.value;
}

/** How many boxes lie in the innermost scope that is opened at first. */
function sideBySide(tree: Hierarchy): number {
  return tree.members([...openedFirst(tree)].at(-1) ?? tree.root).length;
}
