// The place of one tag in a view of summaries: its title, and room for the card of its kind.

import { SummaryKind } from "../core/summaries.js";
import { shortOf } from "../core/tags.js";
import { element, icon } from "./dom.js";
import { HistogramCard } from "./histogram_card.js";
import { ImageCard } from "./image_card.js";
import { ScalarCard } from "./scalar_card.js";
import { Card, lineOf } from "./summary_card.js";
import { TextCard } from "./text_card.js";

const CARDS: Record<SummaryKind, new (tag: string) => Card<never>> = {
  scalar: ScalarCard,
  histogram: HistogramCard,
  image: ImageCard,
  text: TextCard,
};

/** Where a card goes: it keeps the room, and makes the card when it comes into sight. */
export class CardPlace {
  readonly root: HTMLElement;
  card: Card<never> | null = null;
  readonly #headline = element("span", { class: "fb-headline" });
  readonly #room = element("div", { class: "fb-room" });
  #isInSight = false;
  #drawn = "";

  constructor(readonly kind: SummaryKind, readonly tag: string, readonly redraw: () => void) {
    const title = element("h4", { title: lineOf(tag, 500) }, lineOf(shortOf(tag), 80));
    const wide = element("button", {
      type: "button",
      class: "fb-wide",
      title: "Wide",
      "aria-label": `${lineOf(tag)} in full width`,
      "aria-pressed": "false",
      click: () => {
        const on = this.root.classList.toggle("fb-isWide");
        wide.setAttribute("aria-pressed", String(on));
        this.card?.resize();
      },
    }, icon("M2 8h12M5 5L2 8l3 3M11 5l3 3-3 3"));
    this.root = element("article", { class: `fb-card fb-${kind}` }, element("header", {}, title, this.#headline, wide), this.#room);
  }

  see(isInSight: boolean): void {
    this.#isInSight = isInSight;
    if (isInSight) this.redraw();
  }

  /** Have it drawn again, though its series have not changed. */
  forget(): void {
    this.#drawn = "";
  }

  draw(shown: Parameters<Card<never>["draw"]>[0]): void {
    if (!this.#isInSight || !this.root.isConnected) return;
    const state = shown.series.map(({ run, tag, version }) => `${run}:${version}:${tag}`).join();
    if (this.card && state === this.#drawn) return;
    this.#drawn = state;
    if (!this.card) {
      this.card = new CARDS[this.kind](lineOf(this.tag, 120));
      this.#room.append(this.card.root);
    }
    this.card.draw(shown);
    this.#headline.textContent = this.card.headline;
    // Curves lie over each other; everything else side by side.
    const wasBroad = this.root.classList.contains("fb-isBroad");
    const isBroad = this.kind !== "scalar" && shown.series.length > 1;
    if (isBroad !== wasBroad) {
      this.root.classList.toggle("fb-isBroad", isBroad);
      this.card.resize();
    }
  }
}
