// What is said beside the pointer: over everything else in the view, and never beyond its edges.

import { element } from "./dom.js";

const AWAY = 14; // Pixels from the pointer.

export class Tip {
  readonly #root = element("div", { class: "fb-tip", hidden: true });

  /** @param host what the pointer is over; the tip belongs to the view around it. */
  constructor(readonly host: HTMLElement) {}

  /** Say something beside a point of the host, in its pixels. */
  show(x: number, y: number, ...said: (Node | string)[]): void {
    const view = this.host.closest<HTMLElement>(".fb-graph, .fb-summaries, .fb-pipeline, .fb-timeline");
    if (!view) return;
    if (this.#root.parentElement !== view) view.append(this.#root);
    this.#root.replaceChildren(...said);
    this.#root.hidden = false;
    const [outer, inner] = [view.getBoundingClientRect(), this.host.getBoundingClientRect()];
    const left = inner.left - outer.left + x;
    const top = inner.top - outer.top + y;
    const width = this.#root.offsetWidth;
    const isRight = left + AWAY + width <= outer.width - 4;
    this.#root.style.left = `${Math.max(4, isRight ? left + AWAY : left - AWAY - width)}px`;
    this.#root.style.top = `${Math.max(4, Math.min(top, outer.height - this.#root.offsetHeight - 4))}px`;
  }

  hide(): void {
    this.#root.hidden = true;
  }

  dispose(): void {
    this.#root.remove();
  }
}
