// The controls above the charts: which tags, which axis, how smooth, which scale.

import { XAxis } from "../core/axes.js";
import { element } from "./dom.js";
import { Look } from "./summary_card.js";

const AXES: readonly [XAxis, string, string][] = [
  ["step", "Step", "By steps of the training"],
  ["relative", "Relative", "By the time since each run began"],
  ["time", "Time", "By the time of day"],
];

const MOST = 0.99;

export interface BarActions {
  filter(tags: string): void;
  /** A person has chosen how smooth curves are. */
  smooth(smoothing: number): void;
  /** The look was changed. */
  changed(): void;
}

export class SummaryBar {
  readonly root: HTMLElement;
  readonly #slider: HTMLInputElement;
  readonly #amount = element("output", {});

  constructor(look: Look, tags: string, actions: BarActions) {
    const quiet = (event: Event): void => event.stopPropagation(); // Lab has commands on keys.
    const filter = element("input", {
      type: "text", // Not "search": Lab's own handling of Escape would clear it.
      class: "fb-filter",
      value: tags,
      placeholder: "Filter tags",
      "aria-label": "Filter tags by text or regular expression",
      autocomplete: "off",
      spellcheck: "false",
      keydown: quiet,
      input: () => actions.filter(filter.value),
    });
    const axes = AXES.map(([axis, label, title]) =>
      element(
        "button",
        {
          type: "button",
          title,
          "aria-pressed": String(look.axis === axis),
          click: (event) => {
            look.axis = axis;
            for (const button of axes) button.setAttribute("aria-pressed", String(button === event.currentTarget));
            actions.changed();
          },
        },
        label,
      ),
    );
    const log = element(
      "button",
      {
        type: "button",
        title: "Logarithmic vertical axes",
        "aria-pressed": String(look.log),
        click: () => {
          look.log = !look.log;
          log.setAttribute("aria-pressed", String(look.log));
          actions.changed();
        },
      },
      "Log scale",
    );
    this.#slider = element("input", {
      type: "range",
      min: "0",
      max: String(MOST),
      step: "0.01",
      "aria-label": "Smoothing",
      keydown: quiet,
      input: () => {
        actions.smooth(Math.min(MOST, Number(this.#slider.value)));
      },
    });
    this.showSmoothing(look.smoothing);
    this.root = element(
      "div",
      { class: "fb-controls", role: "toolbar", "aria-label": "summaries" },
      filter,
      element("div", { class: "fb-segments", role: "group", "aria-label": "Horizontal axis" }, ...axes),
      element("div", { class: "fb-segments" }, log),
      element("label", { class: "fb-smoothing" }, "Smoothing", this.#slider, this.#amount),
    );
  }

  showSmoothing(smoothing: number): void {
    this.#slider.value = String(smoothing);
    this.#amount.textContent = smoothing.toFixed(2);
  }
}
