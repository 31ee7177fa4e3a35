// The graph for keyboards and screen readers: a tree of what is shown, with the focus on it.
//
// It lies beside the canvas, out of sight; the canvas shows which node it is at. An operation opens
// to the tensors that it gives.

import { Hierarchy } from "../core/hierarchy.js";
import { Selection } from "../core/selection.js";
import { say } from "../core/say.js";
import { beside, shownText } from "../core/words.js";
import { element } from "./dom.js";

const MOST = 300; // Members listed of one scope; the search finds the others.

export interface TreeActions {
  select(selection: Selection): void;
  open(node: number): void;
  close(node: number): void;
  key(event: KeyboardEvent): boolean;
}

/** A row: a node, or a tensor of the operation above it. */
type Row = Exclude<Selection, { kind: "edge" }>;

let trees = 0;

export class AriaTree {
  readonly root: HTMLElement;
  readonly #id = `fb-tree-${++trees}`;
  #tree: Hierarchy | null = null;
  #opened: ReadonlySet<number> = new Set();
  /** Operations whose tensors are listed. */
  readonly #unfolded = new Set<number>();
  #listed: Row[] = [];
  #active = -1;

  constructor(readonly actions: TreeActions) {
    this.root = element("div", {
      class: "fb-tree",
      role: "tree",
      tabindex: "0",
      "aria-label": "graph: arrows move, right opens, left closes, Enter selects",
      keydown: (event) => this.#key(event as KeyboardEvent),
    });
    // What has the attribute gets Lab's notebook keys out of the way.
    this.root.setAttribute("data-lm-suppress-shortcuts", "true");
  }

  update(tree: Hierarchy, opened: ReadonlySet<number>, selected: Selection | null): void {
    if (this.#tree !== tree) this.#unfolded.clear();
    this.#tree = tree;
    this.#opened = opened;
    this.#list(selected);
  }

  #list(selected: Selection | null): void {
    const tree = this.#tree!;
    this.#listed = [];
    this.#active = -1;
    const rows: HTMLElement[] = [];
    const add = (row: Row, words: string, level: number, size: number, place: number, expanded: boolean | null): void => {
      const isSelected = selected !== null && idOf(selected) === idOf(row);
      if (isSelected) this.#active = this.#listed.length;
      this.#listed.push(row);
      const made = element(
        "div",
        {
          role: "treeitem",
          id: `${this.#id}-${idOf(row)}`,
          "aria-level": String(level),
          "aria-setsize": String(size),
          "aria-posinset": String(place),
          "aria-selected": String(isSelected),
        },
        words,
      );
      if (expanded !== null) made.setAttribute("aria-expanded", String(expanded));
      rows.push(made);
    };
    const list = (scope: number, level: number): void => {
      const members = tree.members(scope);
      members.slice(0, MOST).forEach((node, i) => {
        const tensors = tensorsOf(tree, node);
        const expanded = tree.isScope(node) && tree.members(node).length > 0 ? this.#opened.has(node) : tensors.length > 0 ? this.#unfolded.has(node) : null;
        add({ kind: "node", node }, `${shownText(beside(tree.variable(node), tree.label(node)))}, ${say(tree, node)}`, level, members.length, i + 1, expanded);
        if (!expanded) return;
        if (tree.isScope(node)) list(node, level + 1);
        tensors.forEach((tensor, port) =>
          add({ kind: "tensor", tensor }, `output ${port}, ${tree.spec(tensor)}`, level + 1, tensors.length, port + 1, null),
        );
      });
    };
    list(tree.root, 1);
    this.root.replaceChildren(...rows);
    this.#announce();
  }

  #announce(): void {
    const row = this.#listed[this.#active];
    if (row === undefined) this.root.removeAttribute("aria-activedescendant");
    else this.root.setAttribute("aria-activedescendant", `${this.#id}-${idOf(row)}`);
  }

  #moveTo(at: number): void {
    if (at < 0 || at >= this.#listed.length) return;
    this.#active = at;
    this.#announce();
    this.actions.select(this.#listed[at]);
  }

  #unfold(node: number, on: boolean): void {
    if (on) this.#unfolded.add(node);
    else this.#unfolded.delete(node);
    this.#list({ kind: "node", node });
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const known = this.#moves(event.key) || this.actions.key(event);
    if (known) {
      event.preventDefault();
      event.stopPropagation();
    }
  }

  /** Whether the key is one of a tree's. */
  #moves(key: string): boolean {
    const row = this.#listed[this.#active];
    if (key === "ArrowDown") this.#moveTo(this.#active + 1);
    else if (key === "ArrowUp") this.#moveTo(this.#active - 1);
    else if (key === "Home") this.#moveTo(0);
    else if (key === "End") this.#moveTo(this.#listed.length - 1);
    else if (row && ["ArrowRight", "ArrowLeft", "Enter", " "].includes(key)) this.#enters(row, key);
    else return false;
    return true;
  }

  #enters(row: Row, key: string): void {
    const tree = this.#tree!;
    if (row.kind === "tensor") {
      const producer = tree.producer[row.tensor];
      if (key === "ArrowLeft") this.#moveTo(this.#listed.findIndex((each) => each.kind === "node" && each.node === producer));
      else if (key !== "ArrowRight") this.actions.select(row);
      return;
    }
    const { node } = row;
    const isScope = tree.isScope(node);
    const isOpen = isScope ? this.#opened.has(node) : this.#unfolded.has(node);
    const open = (): void => (isScope ? this.actions.open(node) : this.#unfold(node, true));
    const close = (): void => (isScope ? this.actions.close(node) : this.#unfold(node, false));
    if (key === "ArrowRight") {
      if (isOpen) this.#moveTo(this.#active + 1);
      else if (isScope || tensorsOf(tree, node).length > 0) open();
    } else if (key === "ArrowLeft") {
      if (isOpen) close();
      else this.#moveTo(this.#listed.findIndex((each) => each.kind === "node" && each.node === tree.parent[node]));
    } else if (!isScope && tree.body(node) < 0) this.actions.select(row);
    else if (isScope && isOpen) close();
    else this.actions.open(node);
  }
}

function idOf(selection: Selection): string {
  if (selection.kind === "edge") return "edge";
  return selection.kind === "node" ? `${selection.node}` : `t${selection.tensor}`;
}

function tensorsOf(tree: Hierarchy, node: number): number[] {
  if (tree.isScope(node)) return [];
  const found: number[] = [];
  for (let t = tree.data.outputStart[node]; t < tree.data.outputStart[node + 1]; t++) found.push(t);
  return found;
}
