// Arranges what is opened: every opened scope laid out by itself, the inner ones first, in a worker.

import { Hierarchy } from "../core/hierarchy.js";
import { Layout } from "../core/layout.js";
import { Choices, EdgeCache, Prepared, Scene, compose, prepare } from "../core/scene.js";
import { LayoutClient } from "./layout_client.js";

const MOST_WIDTHS = 20_000;

export class Arranger {
  readonly #layouts = new LayoutClient();
  readonly #context = document.createElement("canvas").getContext("2d")!;
  readonly #widths = new Map<string, number>();

  constructor(readonly font: () => string) {
    this.#layouts.warm();
  }

  /**
   * The picture of a tree.
   *
   * @throws Cancelled if another is asked for before it is there.
   */
  async arrange(tree: Hierarchy, edges: EdgeCache, choices: Choices): Promise<Scene> {
    this.#layouts.cancel();
    const prepared = new Map<number, Prepared>();
    const layouts = new Map<number, Layout>();
    const arrange = async (scope: number): Promise<void> => {
      const inner = tree.members(scope).filter((child) => choices.opened.has(child));
      await Promise.all(inner.map(arrange));
      const ready = prepare(edges, scope, choices, this.#measure, layouts);
      prepared.set(scope, ready);
      layouts.set(scope, await this.#layouts.ask(ready.request));
    };
    await arrange(tree.root);
    return compose(tree, prepared, layouts, choices);
  }

  close(): void {
    this.#layouts.close();
  }

  readonly #measure = (text: string, size: number): number => {
    const key = `${size} ${text}`;
    let width = this.#widths.get(key);
    if (width === undefined) {
      this.#context.font = `${size > 12 ? "500 " : ""}${size}px ${this.font()}`;
      width = this.#context.measureText(text).width;
      if (this.#widths.size > MOST_WIDTHS) this.#widths.clear();
      this.#widths.set(key, width);
    }
    return width;
  };
}
