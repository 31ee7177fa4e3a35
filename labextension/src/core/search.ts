// Finds nodes by parts of their names, the Python variables that have their values, or their types.

import { Hierarchy } from "./hierarchy.js";

export interface Found {
  readonly node: number;
  readonly name: string;
}

export class Search {
  readonly #names: string[] = [];

  constructor(readonly tree: Hierarchy) {}

  /** Nodes whose name, or type, has every word of the query; the nearest first. */
  find(query: string, most = 60): { found: Found[]; total: number } {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return { found: [], total: 0 };
    const names = this.#all();
    const ranked: [number, number][] = [];
    for (let node = 0; node < names.length; node++) {
      const name = names[node];
      if (node === this.tree.root || name === "") continue;
      let rank = 0;
      for (const word of words) {
        const label = ending(name, word.split("/").length);
        const variable = this.tree.variable(node).toLowerCase();
        if (label === word || variable === word) continue;
        if (label.startsWith(word)) rank += 1;
        else if (label.includes(word)) rank += 2;
        else if (name.includes(word) || variable.includes(word)) rank += 3;
        else if (!this.tree.isScope(node) && this.tree.type(node).toLowerCase().includes(word)) rank += 4;
        else {
          rank = -1;
          break;
        }
      }
      if (rank < 0) continue;
      // Scopes first among equals, then what lies less deep.
      ranked.push([rank * 1000 + (this.tree.isScope(node) ? 0 : 400) + Math.min(399, this.tree.depth[node]), node]);
    }
    ranked.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const found = ranked.slice(0, most).map(([, node]) => ({ node, name: this.tree.called(node) }));
    return { found, total: ranked.length };
  }

  #all(): string[] {
    if (this.#names.length > 0) return this.#names;
    for (let node = 0; node < this.tree.size; node++) {
      // A scope and the operation of its name are one to a person: the scope is found.
      const outer = this.tree.parent[node];
      const isOwn = node < this.tree.data.operations && this.tree.own(outer) === node;
      this.#names.push(isOwn ? "" : this.tree.name(node).toLowerCase());
    }
    return this.#names;
  }
}

/** The last parts of a name: a word with slashes is held against as many parts as it has itself. */
function ending(name: string, parts: number): string {
  let from = name.length;
  for (; parts > 0 && from >= 0; parts--) from = name.lastIndexOf("/", from - 1);
  return name.slice(from + 1);
}
