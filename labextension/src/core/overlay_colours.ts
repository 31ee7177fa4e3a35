// The colours of what is laid over a picture: pale grounds with strong bars for groups, a scale for
// amounts.

import { LegendRow, Paint, Palette, mixed } from "./colours.js";
import { Group, Tints } from "./overlay.js";
import { runPaint } from "./run_colours.js";

const TINT = { light: 0.16, dark: 0.25 };
const PLAIN = { light: { fill: "#ffffff", line: "#8a94a3" }, dark: { fill: "#22262d", line: "#76818f" } };
const SCALE = { light: ["#f4f5f8", "#f4a35a"], dark: ["#262a31", "#a85c17"] } as const;
const TURN = { light: ["#8fbce8", "#f4a35a"], dark: ["#2f6ea8", "#a85c17"] } as const;

/** The colours of a tree's nodes by what is laid over it. */
export function overlayPalette(tints: Tints): Palette {
  const { unit } = tints.colouring;
  return {
    paintOf: (node, dark) => (unit ? scaled(tints.strength(node), unit === "x", dark) : grouped(tints, node, dark)),
    barOf: (node, dark) =>
      unit ? [] : tints.shares(node).map(({ group, part }) => ({ ...runPaint(group.colour, dark), part })),
    legend: unit ? [scaleRow(tints)] : tints.colouring.groups.map(groupRow),
  };
}

function groupRow({ label, colour, about }: Group): LegendRow {
  return { swatch: [runPaint(colour, false).colour], label, about: about.join(" · ") };
}

function scaleRow(tints: Tints): LegendRow {
  const { by, unit } = tints.colouring;
  return { swatch: scaleColours(unit === "x", false), label: by, about: `from ${tints.ends.join(" to ")}` };
}

/** The colours along a scale, as they go with amounts: from nothing, or from much less, to the most. */
export function scaleColours(both: boolean, dark: boolean): string[] {
  return Array.from({ length: 11 }, (_, i) => scaleColour(both ? i / 5 - 1 : Math.sqrt(i / 10), both, dark));
}

/** The colour of a strength on the scale: of one that goes both ways, from -1 to 1. */
export function scaleColour(strength: number, both: boolean, dark: boolean): string {
  const theme = dark ? "dark" : "light";
  if (!both) return mixed(SCALE[theme][0], SCALE[theme][1], strength);
  return mixed(PLAIN[theme].fill, TURN[theme][strength < 0 ? 0 : 1], Math.abs(strength));
}

function scaled(strength: number | null, both: boolean, dark: boolean): Paint {
  const plain = PLAIN[dark ? "dark" : "light"];
  return strength === null ? plain : { fill: scaleColour(strength, both, dark), line: plain.line, strong: true };
}

/** All of one group has its colour; what is of several is plain, and its bar says which. */
function grouped(tints: Tints, node: number, dark: boolean): Paint {
  const theme = dark ? "dark" : "light";
  const shares = tints.shares(node);
  if (shares.length !== 1) return PLAIN[theme];
  const { colour } = runPaint(shares[0].group.colour, dark);
  return { fill: mixed(PLAIN[theme].fill, colour, TINT[theme]), line: colour };
}
