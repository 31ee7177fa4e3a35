// Plans of a run in a page: the graph with each plan laid over it, two of them side by side. What
// is selected or opened in one is so in the other.

import { inflate, unpacked } from "../core/packing.js";
import { element } from "./dom.js";
import { GraphView } from "./graph_view.js";

export class PlacementView {
  readonly root = element("div", { class: "fb-placements" });
  readonly #panes: GraphView[] = [];

  /** @param graph the name of its graph in the page, by which views of it find each other; may be empty. */
  constructor(place: HTMLElement, readonly graph = "") {
    place.append(this.root);
  }

  /** Show one plan or two, packed as columns of bytes, each a graph of its own. */
  async load(packed: Uint8Array<ArrayBuffer>): Promise<void> {
    const { columns } = unpacked(await inflate(packed));
    const plans = ["plan", "other"].flatMap((name) => columns[name] ?? []);
    const room = element("div", { class: `fb-panes ${plans.length > 1 ? "fb-two" : "fb-one"}` });
    this.root.replaceChildren(room);
    this.#panes.push(...plans.map((_, i) => new GraphView(room, null, plans.length > 1 && i > 0 ? "other plan" : "plan", this.graph)));
    if (this.#panes.length > 1) this.#panes.forEach((pane, i) => pane.link(this.#panes[1 - i]));
    // A copy of each: what is inflated has to be a buffer of its own.
    await Promise.all(this.#panes.map((pane, i) => pane.load(Uint8Array.from(plans[i]))));
    const height = Math.max(...this.#panes.map(({ root: { offsetHeight } }) => offsetHeight));
    for (const { root: pane } of this.#panes) pane.style.height = `${height}px`;
  }

  dispose(): void {
    for (const pane of this.#panes) pane.dispose();
    this.root.remove();
  }
}
