// The images of one tag, of each run side by side, with a slider over the steps.

import { ImageValue, Series } from "../core/summaries.js";
import { element } from "./dom.js";
import { SampleSlider } from "./sample_slider.js";
import { Card, Shown, placeText, runName } from "./summary_card.js";

const [SMALLEST, HIGHEST] = [120, 240]; // Pixels that an image takes.

export class ImageCard implements Card<ImageValue> {
  readonly root = element("div", { class: "fb-images" });
  readonly headline = "";
  readonly #slider: SampleSlider;
  readonly #images = element("div", { class: "fb-gallery" });
  readonly #figures = new Map<number, Figure>();
  #shown: Shown<ImageValue> | null = null;

  constructor(readonly tag: string) {
    this.#slider = new SampleSlider(tag, () => this.#shown && this.draw(this.#shown));
    this.root.append(this.#slider.root, this.#images);
  }

  draw(shown: Shown<ImageValue>): void {
    this.#shown = shown;
    const chosen = this.#slider.choose(shown);
    const figures = shown.series.flatMap((series, i) => {
      if (chosen[i] < 0) return [];
      let figure = this.#figures.get(series.run);
      if (!figure) this.#figures.set(series.run, (figure = new Figure(this.tag)));
      figure.show(series, chosen[i], shown);
      return [figure.root];
    });
    // What stays is not moved: an image would be shown anew.
    if (figures.length !== this.#images.children.length || figures.some((each, i) => each !== this.#images.children[i])) {
      this.#images.replaceChildren(...figures);
    }
  }

  resize(): void {
    // Pages fit images by themselves.
  }

  dispose(): void {
    this.root.remove();
  }
}

class Figure {
  readonly root = element("figure", {});
  readonly #image = element("img", {});
  readonly #caption = element("figcaption", {});
  #value: ImageValue | null = null;

  constructor(readonly tag: string) {
    this.root.append(this.#image, this.#caption);
    this.#image.addEventListener("load", () => URL.revokeObjectURL(this.#image.src));
    this.#image.addEventListener("error", () => {
      URL.revokeObjectURL(this.#image.src);
      this.#image.alt = "no picture that this page can show";
    });
  }

  show(series: Series<ImageValue>, at: number, shown: Shown<ImageValue>): void {
    const value = series.values[at];
    const place = placeText("step", series.steps[at], 0, 0);
    this.#caption.replaceChildren(
      ...(shown.runs.length > 1 ? [runName(shown.runs, series.run, shown.look)] : []),
      element("span", { class: "fb-faint" }, `${value.width} × ${value.height}${shown.series.length > 1 ? ` · ${place}` : ""}`),
    );
    if (value === this.#value) return;
    this.#value = value;
    this.#image.alt = `${this.tag}, ${place}`;
    const scale = Math.max(1, Math.min(SMALLEST / Math.max(1, value.width), HIGHEST / Math.max(1, value.height)));
    this.#image.style.width = `${Math.round(value.width * scale)}px`;
    // Enlarged ones keep their pixels: smoothing would invent what is not there.
    this.#image.style.imageRendering = scale > 1 ? "pixelated" : "auto";
    // The type keeps a page from reading it as anything but pixels.
    this.#image.src = URL.createObjectURL(new Blob([value.bytes], { type: "image/png" }));
  }
}
