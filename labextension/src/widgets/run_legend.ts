// The runs of a view of summaries: a chip for each, which hides and shows it.

import { Run } from "../core/summaries.js";
import { element } from "./dom.js";
import { Look, lineOf, swatch } from "./summary_card.js";

export class RunLegend {
  readonly root = element("div", { class: "fb-legend", role: "group", "aria-label": "runs" });
  #runs: readonly Run[] = [];

  /**
   * @param look whose hidden runs it keeps.
   * @param changed is called when others are hidden.
   */
  constructor(readonly look: Look, readonly changed: () => void) {}

  /** Show the runs that there are, in the colours of the look. */
  show(runs: readonly Run[]): void {
    this.#runs = runs;
    this.#draw();
  }

  #draw(): void {
    const { hidden } = this.look;
    const runs = this.#runs;
    this.root.hidden = runs.length < 2;
    const focused = [...this.root.children].indexOf(document.activeElement as Element);
    const chips = runs.map(({ label, id }, run) =>
      element(
        "button",
        {
          type: "button",
          class: "fb-chip",
          title: `${lineOf(label === id ? label : `${label} (${id})`, 300)}\nclick: show or hide; double click: only this one`,
          "aria-pressed": String(!hidden.has(run)),
          click: () => this.#toggle(run),
          dblclick: () => this.#only(run),
        },
        swatch(run, this.look),
        element("span", {}, lineOf(label, 48)),
      ),
    );
    const all =
      hidden.size > 0
        ? [element("button", { type: "button", class: "fb-chip fb-all", click: () => this.#only(null) }, "Show all")]
        : [];
    this.root.replaceChildren(...chips, ...all);
    if (focused >= 0) (this.root.children[focused] as HTMLElement | undefined)?.focus();
  }

  #toggle(run: number): void {
    const { hidden } = this.look;
    if (!hidden.delete(run)) hidden.add(run);
    this.#draw();
    this.changed();
  }

  #only(run: number | null): void {
    const { hidden } = this.look;
    hidden.clear();
    if (run !== null) this.#runs.forEach((_, other) => other !== run && hidden.add(other));
    this.#draw();
    this.changed();
  }
}
