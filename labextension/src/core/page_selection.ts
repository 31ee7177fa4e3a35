// What is selected in one view of a graph, told to the others of the same graph in the page.

/** Hears of an operation or a scope by its name; null: nothing is selected any more. */
export type Hear = (name: string | null) => void;

const heard = new Map<string, Set<Hear>>();

/** One view's part in what is selected of its graph. */
export class PageSelection {
  /**
   * @param graph the name of the graph in the page; with none the view is alone.
   * @param hear is told what is selected elsewhere.
   */
  constructor(readonly graph: string, readonly hear: Hear) {
    if (!graph) return;
    const views = heard.get(graph) ?? new Set();
    heard.set(graph, views.add(hear));
  }

  /** Tell the others what is selected here. */
  tell(name: string | null): void {
    for (const hear of heard.get(this.graph) ?? []) if (hear !== this.hear) hear(name);
  }

  leave(): void {
    const views = heard.get(this.graph);
    views?.delete(this.hear);
    if (views?.size === 0) heard.delete(this.graph);
  }
}
