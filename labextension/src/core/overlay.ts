// What is laid over the picture of a graph: colours of operations by group or by amount, what
// crosses between devices, what is said on cards (`flowbook/widgets/graphs/overlay.py`).
//
// A scope has a share of each colour that its operations have, or the sum of their amounts.

import { Edge } from "./edges.js";
import { Hierarchy } from "./hierarchy.js";
import { byteSize, counted, grouped, shownText, timeSize } from "./words.js";

/** Operations that have one colour, such as those of a device. */
export interface Group {
  readonly label: string;
  /** The number of the colour. */
  readonly colour: number;
  readonly about: readonly string[];
}

export interface Colouring {
  readonly by: string;
  /** Of amounts: seconds, bytes, or times that of something else; empty for groups. */
  readonly unit: "" | "s" | "B" | "x";
  readonly groups: readonly Group[];
}

export interface OverlayHeader {
  readonly title: string;
  readonly colourings: readonly Colouring[];
}

/** The columns; -1 where nothing is said of an operation. */
export interface OverlayColumns {
  /** The number of the device that each operation runs on. */
  readonly runsOn: Int32Array;
  /** Where it runs in another plan, if that is elsewhere: a text. */
  readonly elsewhere: Int32Array;
  /** Tensors that go to another device, which device, and their bytes. */
  readonly crossTensor: Int32Array;
  readonly crossTo: Int32Array;
  readonly crossBytes: Float64Array;
  readonly noteStart: Int32Array;
  readonly noteHeading: Int32Array;
  readonly noteText: Int32Array;
  readonly noteDetail: Int32Array;
}

export interface OverlayData extends OverlayHeader, OverlayColumns {
  /** For each colouring the number of the group, or the amount, of each operation. */
  readonly values: readonly Float64Array[];
  /** What amounts of unit "x" are divided by; empty for others. */
  readonly against: readonly Float64Array[];
}

/** What of a node has one colour. */
export interface Share {
  readonly group: Group;
  readonly operations: number;
  /** How large a part that is of all that have a colour. */
  readonly part: number;
}

/** What of an edge goes to other devices. */
export interface Crossing {
  readonly bytes: number;
  /** The devices. */
  readonly to: readonly string[];
}

export function sayCrossing({ bytes, to }: Crossing): string {
  return `${byteSize(bytes)} to ${to.map(shownText).join(", ")}`;
}

export const DIFFERS = "≠";
const FACTOR = 4; // As much more or less has the whole colour.

export function overlayOf(
  header: OverlayHeader,
  columns: Readonly<Record<string, Int32Array | Float64Array | Uint8Array>>,
): OverlayData {
  const none = new Float64Array(0);
  return {
    ...(columns as unknown as OverlayColumns),
    ...header,
    values: header.colourings.map((_, i) => columns[`colour${i}`] as Float64Array),
    against: header.colourings.map((_, i) => (columns[`against${i}`] as Float64Array | undefined) ?? none),
  };
}

/** One colouring of a tree: what each node has of it. */
export class Tints {
  readonly #shares = new Map<number, readonly Share[]>();
  readonly #amounts: Float64Array;
  /** What the strongest colour stands for: the largest amount of what is outermost. */
  readonly most: number;

  constructor(readonly tree: Hierarchy, readonly overlay: OverlayData, readonly number: number) {
    this.#amounts = this.colouring.unit ? this.#summed() : new Float64Array(0);
    let outermost = tree.children(tree.root);
    while (outermost.length === 1 && tree.isScope(outermost[0])) outermost = tree.children(outermost[0]);
    this.most = outermost.reduce((most, node) => Math.max(most, this.amount(node) ?? 0), 0);
  }

  get colouring(): Colouring {
    return this.overlay.colourings[this.number];
  }

  /** The colours of a node's operations, in the order of the groups. */
  shares(node: number): readonly Share[] {
    let found = this.#shares.get(node);
    if (!found) {
      const { tree } = this;
      const { groups } = this.colouring;
      const counts = new Array<number>(groups.length).fill(0);
      let total = 0;
      for (let place = tree.begin[node]; place < tree.end[node]; place++) {
        const group = this.overlay.values[this.number][tree.order[place]];
        if (group < 0) continue;
        counts[group] += 1;
        total += 1;
      }
      found = groups.flatMap((group, i) => (counts[i] ? [{ group, operations: counts[i], part: counts[i] / total }] : []));
      this.#shares.set(node, found);
    }
    return found;
  }

  /** The sum of a node's amounts, or of unit "x" their ratio; null where there is none. */
  amount(node: number): number | null {
    const found = this.#amounts[node];
    return found === undefined || Number.isNaN(found) ? null : found;
  }

  /** How strong the colour of a node is, from 0 to 1; of unit "x" below 0 for less; null for none. */
  strength(node: number): number | null {
    const amount = this.amount(node);
    return amount === null ? null : this.strengthOf(amount);
  }

  strengthOf(amount: number): number {
    if (this.colouring.unit !== "x") return this.most > 0 ? Math.sqrt(Math.min(1, amount / this.most)) : 0;
    return Math.max(-1, Math.min(1, Math.log(Math.max(amount, 1e-9)) / Math.log(FACTOR)));
  }

  /** An amount in words. */
  text(amount: number): string {
    const { unit } = this.colouring;
    if (unit === "x") return `${amount.toFixed(2)} ×`;
    return unit === "s" ? timeSize(amount) : byteSize(amount);
  }

  /** The amounts between which colours tell. */
  get ends(): readonly [string, string] {
    return this.colouring.unit === "x" ? ["¼ ×", `${FACTOR} ×`] : [this.text(0), this.text(this.most)];
  }

  /** What the colour of a node says, in words; empty where it has none. */
  say(node: number): string {
    if (this.colouring.unit) {
      const amount = this.amount(node);
      return amount === null ? "" : `${this.colouring.by} ${this.text(amount)}`;
    }
    const shares = this.shares(node);
    if (shares.length === 1) return `on ${shownText(shares[0].group.label)}`;
    return shares.map(({ group, operations }) => `${grouped(operations)} on ${shownText(group.label)}`).join(", ");
  }

  #summed(): Float64Array {
    const { tree } = this;
    const values = this.overlay.values[this.number];
    const against = this.overlay.against[this.number];
    const isRatio = this.colouring.unit === "x";
    const found = new Float64Array(tree.size).fill(Number.NaN);
    const base = isRatio ? new Float64Array(tree.size) : null;
    for (let op = 0; op < tree.data.operations; op++) {
      if (values[op] < 0) continue;
      for (let at = op; at >= 0; at = tree.parent[at]) {
        found[at] = (Number.isNaN(found[at]) ? 0 : found[at]) + values[op];
        if (base) base[at] += Math.max(0, against[op]);
      }
    }
    return base ? found.map((sum, node) => (base[node] > 0 ? sum / base[node] : Number.NaN)) : found;
  }
}

/** What crosses between devices in a tree. */
export class Crossings {
  readonly #bytes = new Map<string, number>();
  readonly #known = new WeakMap<Edge, Crossing | null>();

  constructor(readonly tree: Hierarchy, readonly overlay: OverlayData) {
    overlay.crossTensor.forEach((tensor, i) => this.#bytes.set(`${tensor} ${overlay.crossTo[i]}`, overlay.crossBytes[i]));
  }

  /** What of an edge crosses; each value counts once for each device that it goes to. */
  of(edge: Edge): Crossing | null {
    let found = this.#known.get(edge);
    if (found === undefined) {
      found = this.#sum(edge);
      this.#known.set(edge, found);
    }
    return found;
  }

  #sum({ target, tensors }: Edge): Crossing | null {
    if (this.#bytes.size === 0) return null;
    const { tree } = this;
    const seen = new Set<string>();
    const to = new Set<number>();
    let bytes = 0;
    for (const tensor of tensors) {
      for (let i = tree.wiredStart[tensor]; i < tree.wiredStart[tensor + 1]; i++) {
        const place = tree.begin[tree.wired[i]];
        if (place < tree.begin[target] || place >= tree.end[target]) continue;
        const key = `${tensor} ${this.overlay.runsOn[tree.wired[i]]}`;
        const size = this.#bytes.get(key);
        if (size === undefined || seen.has(key)) continue;
        seen.add(key);
        to.add(this.overlay.runsOn[tree.wired[i]]);
        bytes += size;
      }
    }
    const devices = this.overlay.colourings.find(({ unit }) => unit === "")?.groups ?? [];
    return seen.size > 0 ? { bytes, to: [...to].sort((a, b) => a - b).map((device) => devices[device].label) } : null;
  }
}

/** How many operations of each node run elsewhere in another plan. */
export function differences(tree: Hierarchy, overlay: OverlayData): Int32Array {
  const found = new Int32Array(tree.size);
  for (let op = 0; op < tree.data.operations; op++) {
    if (overlay.elsewhere[op] < 0) continue;
    for (let at = op; at >= 0; at = tree.parent[at]) found[at] += 1;
  }
  return found;
}

/** What is said of an operation: headings, texts and details. */
export function notesOf(tree: Hierarchy, op: number): { heading: string; text: string; detail: string }[] {
  const { overlay, strings } = tree.data;
  if (!overlay) return [];
  const found = [];
  for (let i = overlay.noteStart[op]; i < overlay.noteStart[op + 1]; i++) {
    const [heading, text, detail] = [overlay.noteHeading, overlay.noteText, overlay.noteDetail].map((column) =>
      shownText(strings[column[i]]),
    );
    found.push({ heading, text, detail });
  }
  return found;
}

/** What the mark on a node says that runs elsewhere in another plan, or in part; empty if none. */
export function differenceMark(tree: Hierarchy, differing: Int32Array | null, node: number): string {
  const count = differing?.[node] ?? 0;
  if (count === 0) return "";
  return tree.isScope(node) && tree.count(node) > 1 ? `${DIFFERS} ${grouped(count)}` : DIFFERS;
}

/** What a scope has of each colouring, a line each. */
export function scopeNotes(tints: readonly Tints[], node: number): { text: string; detail: string }[] {
  return tints.flatMap((each) => {
    const { colouring } = each;
    if (!colouring.unit) {
      return each.shares(node).map(({ group, operations }) => ({ text: shownText(group.label), detail: counted(operations, "operation") }));
    }
    const amount = each.amount(node);
    return amount === null ? [] : [{ text: each.text(amount), detail: colouring.by }];
  });
}
