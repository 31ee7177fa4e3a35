// The graph for keyboards and screen readers: a tree of what is shown, with the focus on it.
//
// It lies beside the canvas, out of sight; the canvas shows which node it is at.

import { Hierarchy } from "../core/hierarchy.js";
import { shownText } from "../core/words.js";
import { element } from "./dom.js";

const MOST = 300; // Members listed of one scope; the search finds the others.

export interface TreeActions {
  select(node: number): void;
  open(node: number): void;
  close(node: number): void;
  key(event: KeyboardEvent): boolean;
}

let trees = 0;

export class AriaTree {
  readonly root: HTMLElement;
  readonly #id = `fb-tree-${++trees}`;
  #tree: Hierarchy | null = null;
  #opened: ReadonlySet<number> = new Set();
  #listed: number[] = [];
  #active = -1;

  constructor(readonly actions: TreeActions, readonly say: (node: number) => string) {
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

  update(tree: Hierarchy, opened: ReadonlySet<number>, selected: number | null): void {
    this.#tree = tree;
    this.#opened = opened;
    this.#listed = [];
    const rows: HTMLElement[] = [];
    const list = (scope: number, level: number): void => {
      const members = tree.children(scope);
      members.subarray(0, MOST).forEach((node, i) => {
        this.#listed.push(node);
        const row = element(
          "div",
          {
            role: "treeitem",
            id: `${this.#id}-${node}`,
            "aria-level": String(level),
            "aria-setsize": String(members.length),
            "aria-posinset": String(i + 1),
            "aria-selected": String(node === selected),
          },
          `${shownText(tree.label(node))}, ${this.say(node)}`,
        );
        if (tree.isScope(node)) row.setAttribute("aria-expanded", String(opened.has(node)));
        rows.push(row);
        if (opened.has(node)) list(node, level + 1);
      });
    };
    list(tree.root, 1);
    this.root.replaceChildren(...rows);
    this.#active = selected === null ? -1 : this.#listed.indexOf(selected);
    this.#announce();
  }

  #announce(): void {
    const node = this.#listed[this.#active];
    if (node === undefined) this.root.removeAttribute("aria-activedescendant");
    else this.root.setAttribute("aria-activedescendant", `${this.#id}-${node}`);
  }

  #moveTo(at: number): void {
    if (at < 0 || at >= this.#listed.length) return;
    this.#active = at;
    this.#announce();
    this.actions.select(this.#listed[at]);
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const tree = this.#tree;
    const node = this.#listed[this.#active];
    let known = true;
    if (event.key === "ArrowDown") this.#moveTo(this.#active + 1);
    else if (event.key === "ArrowUp") this.#moveTo(this.#active - 1);
    else if (event.key === "Home") this.#moveTo(0);
    else if (event.key === "End") this.#moveTo(this.#listed.length - 1);
    else if (event.key === "ArrowRight" && tree && node !== undefined) {
      if (tree.isScope(node) && !this.#opened.has(node)) this.actions.open(node);
      else if (this.#opened.has(node)) this.#moveTo(this.#active + 1);
    } else if (event.key === "ArrowLeft" && tree && node !== undefined) {
      if (this.#opened.has(node)) this.actions.close(node);
      else this.#moveTo(this.#listed.indexOf(tree.parent[node]));
    } else if ((event.key === "Enter" || event.key === " ") && tree && node !== undefined) {
      if (!tree.isScope(node)) this.actions.select(node);
      else if (this.#opened.has(node)) this.actions.close(node);
      else this.actions.open(node);
    } else known = this.actions.key(event);
    if (known) {
      event.preventDefault();
      event.stopPropagation();
    }
  }
}
