// The key of what is laid over a picture, below it: what colours tell, which of them, and of what.

import { Colouring, Tints } from "../core/overlay.js";
import { scaleColours } from "../core/overlay_colours.js";
import { runPaint } from "../core/run_colours.js";
import { shownText } from "../core/words.js";
import { element } from "./dom.js";

/** What the key says beside the colours. */
export interface KeyFacts {
  readonly title: string;
  readonly crosses: boolean;
  /** How many operations run elsewhere in another plan. */
  readonly differing: number;
}

export class OverlayKey {
  readonly root = element("div", { class: "fb-key", role: "group", "aria-label": "legend", hidden: true });
  readonly #title = element("strong", {});
  readonly #choice = element("select", { change: () => this.choose(Number(this.#choice.value)) });
  readonly #items = element("ul", {});

  /**
   * @param choose shows another colouring; -1 is that of graphs without any.
   * @param only lets one group stand out, or none.
   */
  constructor(readonly choose: (colouring: number) => void, readonly only: (group: number | null) => void) {
    this.root.append(
      element("div", { class: "fb-keyHead" }, this.#title, element("label", {}, element("span", {}, "Colours"), this.#choice)),
      this.#items,
    );
  }

  /** Say what can be chosen. */
  list(colourings: readonly Colouring[]): void {
    const options = [...colourings.map(({ by }) => by), "likeness"];
    this.#choice.replaceChildren(
      ...options.map((by, i) => element("option", { value: String(i < colourings.length ? i : -1) }, by)),
    );
  }

  /**
   * @param tints the colouring that is shown; null is that of graphs without any.
   * @param group the group that stands out, if one does.
   */
  show(facts: KeyFacts, tints: Tints | null, group: number | null, dark: boolean): void {
    this.root.hidden = false;
    this.#title.textContent = shownText(facts.title);
    this.#choice.value = String(tints?.number ?? -1);
    const focused = [...this.#items.querySelectorAll("button")].indexOf(document.activeElement as HTMLButtonElement);
    const items = tints ? (tints.colouring.unit ? [scale(tints, dark)] : this.#groups(tints.colouring, group, dark)) : [];
    if (facts.crosses) items.push(item(element("i", { class: "fb-keyLine" }), "to another device"));
    if (facts.differing > 0) {
      const mark = element("i", { class: "fb-keyMark" }, "≠");
      items.push(item(mark, "elsewhere in the other plan", facts.differing.toLocaleString("en-US")));
    }
    this.#items.replaceChildren(...items);
    if (focused >= 0) this.#items.querySelectorAll("button")[focused]?.focus();
  }

  #groups({ groups }: Colouring, only: number | null, dark: boolean): HTMLElement[] {
    return groups.map(({ label, colour, about }, i) => {
      const paint = runPaint(colour, dark);
      const swatch = element("i", { class: "fb-keyColour", "aria-hidden": "true" });
      swatch.style.borderTopColor = paint.colour;
      swatch.style.borderTopStyle = paint.dash.length > 0 ? "dashed" : "solid";
      const button = element(
        "button",
        {
          type: "button",
          title: "click: let this alone stand out",
          "aria-pressed": String(only === i),
          click: () => this.only(only === i ? null : i),
        },
        swatch,
        element("b", {}, shownText(label)),
        element("span", {}, about.map(shownText).join(" · ")),
      );
      return element("li", {}, button);
    });
  }
}

function scale(tints: Tints, dark: boolean): HTMLElement {
  const bar = element("i", { class: "fb-keyScale", "aria-hidden": "true" });
  bar.style.background = `linear-gradient(to right, ${scaleColours(tints.colouring.unit === "x", dark).join(", ")})`;
  const [least, most] = tints.ends;
  return element("li", {}, element("b", {}, tints.colouring.by), element("span", {}, least), bar, element("span", {}, most));
}

function item(sign: HTMLElement, label: string, detail = ""): HTMLElement {
  sign.setAttribute("aria-hidden", "true");
  return element("li", {}, sign, element("span", {}, label), ...(detail ? [element("b", {}, detail)] : []));
}
