// The texts of one tag, with a slider over the steps. They are text, whatever they contain.

import { TextValue } from "../core/summaries.js";
import { element } from "./dom.js";
import { SampleSlider } from "./sample_slider.js";
import { Card, Shown, runName } from "./summary_card.js";

export class TextCard implements Card<TextValue> {
  readonly root = element("div", { class: "fb-texts" });
  readonly headline = "";
  readonly #slider: SampleSlider;
  readonly #texts = element("div", {});
  #shown: Shown<TextValue> | null = null;

  constructor(readonly tag: string) {
    this.#slider = new SampleSlider(tag, () => this.#shown && this.draw(this.#shown));
    this.root.append(this.#slider.root, this.#texts);
  }

  draw(shown: Shown<TextValue>): void {
    this.#shown = shown;
    const chosen = this.#slider.choose(shown);
    this.#texts.replaceChildren(
      ...shown.series.flatMap((series, i) => {
        if (chosen[i] < 0) return [];
        const name = shown.runs.length > 1 ? [runName(shown.runs, series.run, shown.look)] : [];
        const texts = series.values[chosen[i]].map((text) => element("pre", {}, visible(text)));
        return [element("div", {}, ...name, ...texts)];
      }),
    );
  }

  resize(): void {
    // Pages break lines by themselves.
  }

  dispose(): void {
    this.root.remove();
  }
}

/** Text in lines: what cannot be shown gets a mark. */
function visible(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(/[^\P{C}\n\t]/gu, "\uFFFD");
}
