// A slider over the steps at which there is something to see; it follows the latest until it is moved.

import { XAxis } from "../core/axes.js";
import { element } from "./dom.js";
import { Shown, placeText } from "./summary_card.js";

export class SampleSlider {
  readonly root: HTMLElement;
  readonly #input: HTMLInputElement;
  readonly #label = element("span", { class: "fb-at" });
  #steps: number[] = [];
  #chosen: number | null = null; // A step; null follows the latest.

  /** @param moved is called when a person has chosen another step. */
  constructor(what: string, moved: () => void) {
    this.#input = element("input", {
      type: "range",
      min: "0",
      "aria-label": `step of ${what}`,
      input: () => {
        const at = Number(this.#input.value);
        this.#chosen = at === this.#steps.length - 1 ? null : this.#steps[at];
        moved();
      },
    });
    this.root = element("div", { class: "fb-steps" }, this.#input, this.#label);
  }

  /** For each series the number of the point to show, -1 if it has none so early. */
  choose(shown: Shown<unknown>): number[] {
    this.#steps = [...new Set(shown.series.flatMap(({ steps }) => steps))].sort((a, b) => a - b);
    const last = this.#steps.length - 1;
    const wanted = this.#chosen ?? this.#steps[last];
    const at = this.#steps.findLastIndex((step) => step <= wanted);
    this.#input.max = String(Math.max(0, last));
    this.#input.value = String(Math.max(0, at));
    this.#input.disabled = last < 1;
    const chosen = shown.series.map(({ steps }) => latest(steps, wanted));
    this.#label.textContent = wanted === undefined ? "" : this.#say(shown, shown.look.axis, chosen, wanted);
    this.#input.setAttribute("aria-valuetext", this.#label.textContent);
    return chosen;
  }

  #say(shown: Shown<unknown>, axis: XAxis, chosen: readonly number[], wanted: number): string {
    const i = chosen.findIndex((at) => at >= 0);
    if (axis === "step" || i < 0) return placeText("step", wanted, 0, 0);
    const { run, steps, times } = shown.series[i];
    return `${placeText("step", steps[chosen[i]], 0, 0)} · ${placeText(axis, 0, times[chosen[i]], shown.startOf(run))}`;
  }
}

/** The last point whose step is not beyond the wanted one. */
function latest(steps: readonly number[], wanted: number): number {
  let found = -1;
  steps.forEach((step, i) => {
    if (step <= wanted && (found < 0 || step >= steps[found])) found = i;
  });
  return found;
}
