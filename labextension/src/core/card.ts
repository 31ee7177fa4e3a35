// What is said of what is selected: words only, each with what it leads to.

import { Hierarchy } from "./hierarchy.js";
import { Tints, notesOf, scopeNotes } from "./overlay.js";
import { Kind } from "./payload.js";
import { Selection } from "./selection.js";
import { byteSize, counted, shownText } from "./words.js";

export interface Item {
  readonly text: string;
  readonly detail: string;
  /** What it leads to, or null. */
  readonly goal: Selection | null;
  readonly code: boolean;
}

export interface Section {
  readonly heading: string;
  readonly items: Item[];
}

export interface Card {
  readonly title: string;
  readonly subtitle: string;
  /** What is wrong with it, as that it is stale; or an empty text. */
  readonly warning: string;
  readonly sections: Section[];
}

const MOST = 12;

/** What scopes are called that are no name scopes. */
const SCOPES: Partial<Record<number, string>> = {
  [Kind.Series]: "series",
  [Kind.Loop]: "loop",
  [Kind.Branch]: "branch",
  [Kind.Part]: "part of a loop or a branch",
  [Kind.Role]: "what is routed",
  [Kind.Function]: "body of a function",
  [Kind.Call]: "call of a template",
};
/** Those that say when what lies in them runs. */
const FLOW: ReadonlySet<number> = new Set([Kind.Loop, Kind.Branch, Kind.Part]);

/** @param tints what is laid over the picture, of which scopes tell what they have. */
export function cardOf(tree: Hierarchy, selection: Selection, tints: readonly Tints[] = []): Card {
  if (selection.kind === "tensor") return tensorCard(tree, selection.tensor);
  if (selection.kind === "edge") return edgeCard(tree, selection.source, selection.target, selection.tensors);
  return nodeCard(tree, selection.node, tints);
}

function nodeCard(tree: Hierarchy, node: number, tints: readonly Tints[]): Card {
  // A scope of an operation's own name, as a variable's is, is that operation to a person.
  const own = tree.isScope(node) ? tree.own(node) : node;
  const sections = own >= 0 ? operationSections(tree, own) : scopeSections(tree, node);
  const { data } = tree;
  const facts: Item[] = [];
  if (tree.isScope(node)) {
    const alike = (tree.alike.get(tree.template[node]) ?? 1) - 1;
    facts.push(plain(counted(tree.count(node) - tree.unseen[node], "operation")));
    if (alike > 0) facts.push(plain(`${counted(alike, "other scope")} built alike`));
  }
  const ran = tree.ran[tree.name(node)];
  if (ran) facts.push(plain(ran));
  if (tree.about(node)) facts.push(plain(tree.about(node)));
  if (tree.parameters[node] > 0) facts.push(plain(counted(tree.parameters[node], "trainable parameter")));
  if (facts.length > 0) sections.unshift({ heading: "holds", items: facts });
  const around = tree.around(node).filter((scope) => FLOW.has(tree.kind[scope]));
  list(sections, "in", around.map((scope) => nodeItem(tree, scope)));
  sections.unshift(...overlaySections(tree, node, own, tints));
  return {
    title: shownText(tree.called(node)) || "graph",
    subtitle: own >= 0 ? tree.type(own) : (SCOPES[tree.kind[node]] ?? "name scope"),
    warning: warningOf(tree, node, own, data.stale),
    sections,
  };
}

/** What is laid over the picture says of an operation, or of all that lie in a scope. */
function overlaySections(tree: Hierarchy, node: number, own: number, tints: readonly Tints[]): Section[] {
  const sections = new Map<string, Section>();
  const add = (heading: string, text: string, detail: string): void => {
    const known = sections.get(heading) ?? { heading, items: [] };
    known.items.push({ text, detail, goal: null, code: false });
    sections.set(heading, known);
  };
  if (own >= 0) for (const { heading, text, detail } of notesOf(tree, own)) add(heading, text, detail);
  if (tree.isScope(node) && tree.count(node) > 1) {
    for (const { text, detail } of scopeNotes(tints, node)) add(own >= 0 ? "with what belongs to it" : "in a run", text, detail);
  }
  return [...sections.values()];
}

function warningOf(tree: Hierarchy, node: number, own: number, stale: Int32Array): string {
  if (own >= 0 && tree.data.retired[own]) return "redefined: only old definitions still refer to it";
  if (own >= 0 && stale[own] >= 0) return `stale: ${tree.data.strings[stale[own]]}`;
  return tree.stale[node] > 0 ? `${counted(tree.stale[node], "stale operation")} inside` : "";
}

function operationSections(tree: Hierarchy, op: number): Section[] {
  const { data } = tree;
  const sections: Section[] = [];
  const text = (i: number): string => shownText(data.strings[i]);
  const inputs: number[] = [];
  for (let i = data.inputStart[op]; i < data.inputStart[op + 1]; i++) inputs.push(data.input[i]);
  list(sections, "inputs", inputs.map((t) => tensorItem(tree, t)));
  const waits = [...data.control.subarray(data.controlStart[op], data.controlStart[op + 1])];
  if (tree.body(op) >= 0) list(sections, "calls", [nodeItem(tree, tree.body(op))]);
  list(sections, "waits for", waits.map((other) => nodeItem(tree, other)));
  const outputs: Item[] = [];
  for (let t = data.outputStart[op]; t < data.outputStart[op + 1]; t++) {
    outputs.push(tensorItem(tree, t));
    const takers = tree.taker.subarray(tree.takerStart[t], tree.takerStart[t + 1]);
    for (const taker of takers.subarray(0, MOST)) outputs.push({ ...nodeItem(tree, taker), detail: "takes it" });
    if (takers.length > MOST) outputs.push(plain(`and ${counted(takers.length - MOST, "more operation")}`));
  }
  list(sections, "outputs", outputs, 4 * MOST);
  const attributes: Item[] = [];
  for (let i = data.attributeStart[op]; i < data.attributeStart[op + 1]; i++) {
    attributes.push({ text: text(data.attributeName[i]), detail: text(data.attributeValue[i]), goal: null, code: false });
  }
  list(sections, "attributes", attributes, 2 * MOST);
  if (text(data.device[op])) list(sections, "device", [code(text(data.device[op]))]);
  const defined = [plain(text(data.place[op]))];
  if (text(data.source[op])) defined.push(code(text(data.source[op])));
  list(sections, "defined at", defined);
  return sections;
}

function scopeSections(tree: Hierarchy, scope: number): Section[] {
  if (scope === tree.root) return [];
  const { data } = tree;
  const [from, to] = [tree.begin[scope], tree.end[scope]];
  const inside = (op: number): boolean => tree.begin[op] >= from && tree.begin[op] < to;
  const entering = new Set<number>();
  const leaving = new Set<number>();
  const places = new Map<number, number>();
  for (const op of tree.order.subarray(from, to)) {
    places.set(data.place[op], (places.get(data.place[op]) ?? 0) + 1);
    for (let i = data.inputStart[op]; i < data.inputStart[op + 1]; i++) {
      if (!inside(tree.producer[data.input[i]])) entering.add(data.input[i]);
    }
    for (let t = data.outputStart[op]; t < data.outputStart[op + 1]; t++) {
      if (tree.taker.subarray(tree.takerStart[t], tree.takerStart[t + 1]).some((taker) => !inside(taker))) leaving.add(t);
    }
  }
  const sections: Section[] = [];
  list(sections, "inputs", [...entering].map((t) => tensorItem(tree, t)));
  if (tree.body(scope) >= 0) list(sections, "calls", [nodeItem(tree, tree.body(scope))]);
  list(sections, "called by", tree.calls(scope).map((op) => nodeItem(tree, op)));
  list(sections, "outputs", [...leaving].map((t) => tensorItem(tree, t)));
  const lines = [...places].sort((a, b) => b[1] - a[1]).map(([place, count]) => ({
    text: shownText(data.strings[place]), detail: counted(count, "operation"), goal: null, code: false,
  }));
  list(sections, "defined at", lines, 6);
  return sections;
}

function tensorCard(tree: Hierarchy, tensor: number): Card {
  const op = tree.producer[tensor];
  const takers = tree.taker.subarray(tree.takerStart[tensor], tree.takerStart[tensor + 1]);
  const sections: Section[] = [];
  list(sections, "from", [{ ...nodeItem(tree, op), detail: tree.type(op) }]);
  list(sections, "taken by", [...takers].map((taker) => ({ ...nodeItem(tree, taker), detail: tree.type(taker) })));
  const { text, detail } = tensorItem(tree, tensor);
  return { title: text, subtitle: detail, warning: warningOf(tree, op, op, tree.data.stale), sections };
}

/** An edge that stands for several tensors, to choose from. */
function edgeCard(tree: Hierarchy, source: number, target: number, tensors: readonly number[]): Card {
  const sections: Section[] = [];
  list(sections, "between", [nodeItem(tree, source), nodeItem(tree, target)]);
  list(sections, "tensors", tensors.map((tensor) => tensorItem(tree, tensor)), 4 * MOST);
  return { title: counted(tensors.length, "tensor"), subtitle: "edge", warning: "", sections };
}

function tensorItem(tree: Hierarchy, tensor: number): Item {
  const bytes = tree.data.bytes[tensor];
  const size = bytes >= 0 ? ` · ${byteSize(bytes)}` : "";
  const goal = { kind: "tensor", tensor } as const;
  return { text: shownText(tree.tensorCalled(tensor)), detail: `${tree.spec(tensor)}${size}`, goal, code: true };
}

function nodeItem(tree: Hierarchy, node: number): Item {
  return { text: shownText(tree.called(node)), detail: "", goal: { kind: "node", node }, code: true };
}

function plain(text: string): Item {
  return { text, detail: "", goal: null, code: false };
}

function code(text: string): Item {
  return { text, detail: "", goal: null, code: true };
}

function list(sections: Section[], heading: string, items: Item[], most = MOST): void {
  if (items.length === 0) return;
  const shown = items.length > most ? [...items.slice(0, most), plain(`and ${counted(items.length - most, "more")}`.replace(/s$/, ""))] : items;
  sections.push({ heading, items: shown });
}
