// Colours of nodes: the same for what is built alike. Given as hex, which every renderer knows.

import { Hierarchy } from "./hierarchy.js";
import { Kind } from "./payload.js";

export interface Paint {
  fill: string;
  line: string;
  /** Whether it may be so strong that what is fainter than ink is not read on it. */
  strong?: boolean;
}

/** A part of the bar at the bottom of a closed node. */
export interface BarPart {
  readonly colour: string;
  readonly dash: readonly number[];
  readonly part: number;
}

/** A line of a legend: its colours, side by side, what they are, and what is said of that. */
export interface LegendRow {
  readonly swatch: readonly string[];
  readonly label: string;
  readonly about: string;
}

/** What nodes are painted with. */
export interface Palette {
  paintOf(node: number, dark: boolean): Paint;
  /** The parts of its bar, from left to right; none where it has no bar. */
  barOf(node: number, dark: boolean): readonly BarPart[];
  /** What the colours say, for a picture without a page around it. */
  readonly legend: readonly LegendRow[];
}

/** The same colours for what is built alike. */
export function likenessPalette(tree: Hierarchy): Palette {
  const hues = templateHues(tree);
  return { paintOf: (node, dark) => paintOf(tree, hues, node, dark), barOf: () => [], legend: [] };
}

/**
 * Hues, in degrees of oklch, far from each other in the order in which they are given out, and from
 * those of variables and inputs, which mean something else.
 */
const HUES = [255, 310, 200, 20, 280, 340, 228];
const AMBER = 82;
const GREEN = 152;
const VIOLET = 300;

/** The hue of each template that several scopes have; the most frequent ones first. */
function templateHues(tree: Hierarchy): Map<number, number> {
  const repeated = new Map<number, number>();
  for (let node = tree.root + 1; node < tree.size; node++) {
    const kind = tree.kind[node];
    if (kind !== Kind.Scope && kind !== Kind.Series) continue;
    const template = tree.template[node];
    const weight = tree.count(node);
    repeated.set(template, (repeated.get(template) ?? 0) + weight);
  }
  const found = [...repeated.keys()].filter((template) => (tree.alike.get(template) ?? 0) > 1);
  found.sort((a, b) => repeated.get(b)! - repeated.get(a)! || a - b);
  return new Map(found.map((template, i) => [template, HUES[i % HUES.length]]));
}

/** How a node is painted. */
function paintOf(tree: Hierarchy, hues: ReadonlyMap<number, number>, node: number, dark: boolean): Paint {
  switch (tree.kind[node]) {
    case Kind.Variable:
      return tinted(AMBER, dark, 0.06);
    case Kind.Input:
      return tinted(GREEN, dark, 0.05);
    case Kind.Loop:
    case Kind.Branch:
    case Kind.Function:
    case Kind.Call:
      return tinted(VIOLET, dark, 0.035);
    case Kind.Role:
      return tinted(VIOLET, dark, 0.07);
    case Kind.Constant:
      return dark ? { fill: "#24282f", line: "#5a6472" } : { fill: "#f1f3f5", line: "#a9b1bc" };
    case Kind.Part:
    case Kind.Plain:
    case Kind.Arguments:
      return dark ? { fill: "#22262d", line: "#76818f" } : { fill: "#ffffff", line: "#8a94a3" };
    default: {
      const hue = hues.get(tree.template[node]);
      if (hue !== undefined) return tinted(hue, dark, 0.045);
      return dark ? { fill: "#2b3139", line: "#7c8796" } : { fill: "#eef1f5", line: "#8591a1" };
    }
  }
}

/** The colour of lines that go round. */
export function roundLine(dark: boolean): string {
  return tinted(VIOLET, dark, 0.07).line;
}

function tinted(hue: number, dark: boolean, chroma: number): Paint {
  return dark
    ? { fill: hex(0.32, chroma, hue), line: hex(0.68, chroma * 2, hue) }
    : { fill: hex(0.945, chroma * 0.75, hue), line: hex(0.6, chroma * 2.1, hue) };
}

/** A colour of oklch as hex, as near as sRGB comes. */
export function hex(lightness: number, chroma: number, hue: number): string {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  const channel = (value: number): string => {
    const clear = Math.min(1, Math.max(0, value));
    const encoded = clear <= 0.0031308 ? 12.92 * clear : 1.055 * clear ** (1 / 2.4) - 0.055;
    return Math.round(encoded * 255).toString(16).padStart(2, "0");
  };
  return `#${linear.map(channel).join("")}`;
}

/** A colour between two: of the second so large a part. */
export function mixed(first: string, second: string, part: number): string {
  const channel = (colour: string, i: number): number => parseInt(colour.slice(i, i + 2), 16);
  return `#${[1, 3, 5]
    .map((i) => Math.round(channel(first, i) + (channel(second, i) - channel(first, i)) * part).toString(16).padStart(2, "0"))
    .join("")}`;
}
