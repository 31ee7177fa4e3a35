// Summaries in a page: which tags and runs are shown, how, and what follows from each press.
//
// Everything happens here, in the page: the kernel may be busy or gone. A card is made when it comes
// into view and drawn when what it shows has changed, at most once a frame.

import { XAxis } from "../core/axes.js";
import { inflate } from "../core/packing.js";
import { usualSmoothing } from "../core/smoothing.js";
import { Series, SummaryKind, SummaryStore } from "../core/summaries.js";
import { ChartTag, chartsOf } from "../core/splits.js";
import { filterOf, grouped } from "../core/tags.js";
import { counted } from "../core/words.js";
import { CardPlace } from "./card_place.js";
import { element, icon, keepKeys } from "./dom.js";
import { RunLegend } from "./run_legend.js";
import { SummaryBar } from "./summary_bar.js";
import { Look, lineOf } from "./summary_card.js";
import { SUMMARY_STYLES } from "./summary_styles.js";
import { onThemeChange, readTheme } from "./theme.js";

const AT_ONCE = 48; // Tags that a group shows before it is asked for more,
const OPENED = 12; // and that opened groups have at first, in all.

export interface Options {
  tags?: string;
  /** Null: as is usual for so many points. */
  smoothing?: number | null;
  x?: XAxis;
  log?: boolean;
}

export class SummariesView {
  readonly root = element("div", { class: "fb-summaries", role: "group", "aria-label": "summaries" });
  readonly #bar: SummaryBar;
  readonly #legend: RunLegend;
  readonly #said = element("div", { class: "fb-said", role: "status", hidden: true });
  readonly #body = element("div", { class: "fb-body" });
  readonly #status = element("div", { class: "fb-status", role: "status" });
  readonly #store = new SummaryStore();
  readonly #look: Look;
  readonly #places = new Map<string, CardPlace>();
  /** What a person opened and closed, by prefix. */
  readonly #opened = new Map<string, boolean>();
  readonly #asked = new Map<string, number>();
  readonly #ends: (() => void)[] = [];
  readonly #inSight: IntersectionObserver;
  #taken: Promise<void> = Promise.resolve();
  #tags = "";
  #charts = new Map<string, ChartTag>();
  #isSmoothingChosen: boolean;
  #frame = 0;
  #asks = 0;

  /**
   * @param place where it goes.
   * @param options how it is shown at first.
   * @param ask is called when a frame was lost.
   */
  constructor(place: HTMLElement, options: Options, readonly ask: () => void = () => undefined) {
    this.root.append(element("style", {}, SUMMARY_STYLES));
    keepKeys(this.root);
    place.append(this.root);
    this.#look = {
      axis: options.x ?? "step",
      smoothing: options.smoothing ?? 0,
      log: options.log ?? false,
      theme: readTheme(this.root),
      hidden: new Set(),
    };
    this.#isSmoothingChosen = typeof options.smoothing === "number";
    this.#tags = options.tags ?? "";
    this.#bar = new SummaryBar(this.#look, this.#tags, {
      filter: (tags) => {
        this.#tags = tags;
        this.#arrange();
      },
      smooth: (smoothing) => {
        this.#isSmoothingChosen = true;
        this.#smooth(smoothing);
      },
      changed: () => this.#redraw(true),
    });
    this.#legend = new RunLegend(this.#look, () => this.#redraw(true));
    this.root.append(this.#bar.root, this.#legend.root, this.#said, this.#body, this.#status);
    this.#inSight = new IntersectionObserver((entries) => this.#see(entries), { rootMargin: "240px 0px" });
    const sized = new ResizeObserver(() => {
      for (const each of this.#places.values()) each.card?.resize();
    });
    sized.observe(this.#body);
    this.#ends.push(
      () => sized.disconnect(),
      () => this.#inSight.disconnect(),
      onThemeChange(this.root, () => {
        this.#look.theme = readTheme(this.root);
        this.#legend.show(this.#store.runs);
        this.#redraw(true);
      }),
    );
    this.#legend.show(this.#store.runs);
    this.#arrange();
  }

  /** The number of the latest frame. */
  get sequence(): number {
    return this.#store.sequence;
  }

  /** Take in a frame, after those that came before. */
  take(packed: Uint8Array<ArrayBuffer>): Promise<void> {
    this.#taken = this.#taken.then(async () => {
      const buffer = await inflate(packed);
      const [before, runs] = [this.#store.sequence, JSON.stringify(this.#store.runs)];
      const isNew = this.#store.apply(buffer);
      if (before >= 0 && this.#store.sequence > before + 1) this.#askSoon();
      if (JSON.stringify(this.#store.runs) !== runs) {
        this.#legend.show(this.#store.runs);
        this.#redraw(true);
      }
      if (isNew) this.#arrange();
      if (!this.#isSmoothingChosen) this.#smooth(usualSmoothing(this.#store.longestCurve));
      this.#redraw(false);
    });
    return this.#taken;
  }

  dispose(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#asks);
    for (const end of this.#ends) end();
    for (const each of this.#places.values()) each.card?.dispose();
    this.#places.clear();
    this.root.remove();
  }

  #smooth(smoothing: number): void {
    if (smoothing === this.#look.smoothing) return;
    this.#look.smoothing = smoothing;
    this.#bar.showSmoothing(smoothing);
    this.#redraw(true);
  }

  /** One question for many frames that were lost. */
  #askSoon(): void {
    if (this.#asks) return;
    this.#asks = window.setTimeout(() => {
      this.#asks = 0;
      this.ask();
    }, 500);
  }

  // What is there

  /** Put the cards of the tags that are asked for into their groups. */
  #arrange(): void {
    const isAsked = filterOf(this.#tags);
    const wanted = new Map<string, { tag: string; kind: SummaryKind }>();
    const asked = [...this.#store.series].filter(({ tag }) => isAsked(tag));
    this.#charts = chartsOf(asked.flatMap(({ kind, tag }) => (kind === "scalar" ? [tag] : [])));
    for (const { tag, kind } of asked) {
      const title = this.#titleOf(kind, tag);
      wanted.set(keyOf(kind, title), { tag: title, kind });
    }
    for (const [key, place] of this.#places) {
      if (wanted.has(key)) continue;
      this.#inSight.unobserve(place.root);
      place.card?.dispose();
      this.#places.delete(key);
    }
    const kinds = new Map<string, SummaryKind[]>();
    for (const { tag, kind } of wanted.values()) kinds.set(tag, [...(kinds.get(tag) ?? []), kind]);
    let room = OPENED;
    const groups = grouped(kinds.keys()).map(({ prefix, tags }) => {
      const isOpened = this.#opened.get(prefix) ?? (room > 0 || this.#tags !== "");
      room -= tags.length;
      return this.#group(prefix, tags, kinds, isOpened);
    });
    const focused = document.activeElement;
    this.#body.replaceChildren(...(groups.length > 0 ? groups : [this.#nothing()]));
    if (focused instanceof HTMLElement && this.root.contains(focused)) focused.focus({ preventScroll: true });
    this.#say();
    this.#redraw(false);
  }

  #group(prefix: string, tags: readonly string[], kinds: ReadonlyMap<string, SummaryKind[]>, isOpened: boolean): HTMLElement {
    const cards = element("div", { class: "fb-cards" });
    const most = this.#asked.get(prefix) ?? AT_ONCE;
    if (isOpened) {
      // Curves first: they are what is looked at while a training runs.
      const isCurve = (tag: string): boolean => kinds.get(tag)!.includes("scalar");
      const ordered = [...tags.filter(isCurve), ...tags.filter((tag) => !isCurve(tag))];
      for (const tag of ordered.slice(0, most)) {
        for (const kind of kinds.get(tag)!) cards.append(this.#placeOf(kind, tag).root);
      }
    }
    const head = element(
      "button",
      {
        type: "button",
        class: "fb-head",
        "aria-expanded": String(isOpened),
        click: () => {
          this.#opened.set(prefix, !isOpened);
          this.#arrange();
          this.#headOf(prefix)?.focus({ preventScroll: true });
        },
      },
      icon("M6 4l4 4-4 4"),
      element("span", { class: "fb-prefix" }, lineOf(prefix || "summaries", 120)),
      element("span", { class: "fb-faint" }, tags.length.toLocaleString("en-US")),
    );
    head.dataset["prefix"] = prefix;
    const rest = tags.length - most;
    const more =
      isOpened && rest > 0
        ? [
            element(
              "button",
              {
                type: "button",
                class: "fb-more",
                click: () => {
                  this.#asked.set(prefix, most + AT_ONCE);
                  this.#arrange();
                },
              },
              `Show ${Math.min(AT_ONCE, rest)} more of ${rest.toLocaleString("en-US")}`,
            ),
          ]
        : [];
    return element("section", { class: "fb-tags" }, head, cards, ...more);
  }

  /** What the card of a tag is of: several tags with curves may share one. */
  #titleOf(kind: SummaryKind, tag: string): string {
    return kind === "scalar" ? (this.#charts.get(tag)?.title ?? tag) : tag;
  }

  #headOf(prefix: string): HTMLElement | undefined {
    return [...this.#body.querySelectorAll<HTMLElement>(".fb-head")].find((head) => head.dataset["prefix"] === prefix);
  }

  #placeOf(kind: SummaryKind, tag: string): CardPlace {
    const key = keyOf(kind, tag);
    let place = this.#places.get(key);
    if (!place) {
      place = new CardPlace(kind, tag, () => this.#redraw(false));
      this.#places.set(key, place);
      this.#inSight.observe(place.root);
    }
    return place;
  }

  #nothing(): HTMLElement {
    const [what, more] = this.#store.isEmpty
      ? ["No summaries yet", "Steps of a training give them; other runs where sess.summarize(fetches=...) names what they fetch."]
      : [`No tag matches “${lineOf(this.#tags, 60)}”`, "Text or a regular expression finds tags that contain it."];
    return element("div", { class: "fb-nothing" }, element("strong", {}, what), element("span", {}, more));
  }

  #say(): void {
    const tags = new Set([...this.#store.series].map(({ kind, tag }) => keyOf(kind, tag))).size;
    this.#status.textContent = this.#store.isEmpty ? "" : `${counted(this.#store.runs.length, "run")} · ${counted(tags, "tag")}`;
    this.#said.textContent = this.#store.said.map((text) => lineOf(text, 400)).join("\n");
    this.#said.hidden = this.#store.said.length === 0;
  }

  // Drawing

  #see(entries: readonly IntersectionObserverEntry[]): void {
    const byRoot = new Map<Element, CardPlace>([...this.#places.values()].map((place) => [place.root, place]));
    for (const { target, isIntersecting } of entries) byRoot.get(target)?.see(isIntersecting);
  }

  /** Draw soon what has changed and is in sight; everything in sight, if `all`. */
  #redraw(all: boolean): void {
    if (all) for (const place of this.#places.values()) place.forget();
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    this.#frame = 0;
    const { hidden } = this.#look;
    const byKey = new Map<string, Series[]>();
    for (const series of this.#store.series) {
      if (hidden.has(series.run)) continue;
      if (series.kind === "scalar" && !this.#charts.has(series.tag)) continue; // It is not asked for.
      const key = keyOf(series.kind, this.#titleOf(series.kind, series.tag));
      const known = byKey.get(key);
      if (known) known.push(series);
      else byKey.set(key, [series]);
    }
    const starts = new Map<number, number>();
    const startOf = (run: number): number => {
      const known = starts.get(run) ?? this.#store.startOf(run);
      starts.set(run, known);
      return known;
    };
    for (const [key, place] of this.#places) {
      const series = (byKey.get(key) ?? []).sort((a, b) => a.run - b.run);
      place.draw({ series: series as Series<never>[], runs: this.#store.runs, look: this.#look, startOf });
    }
    this.#say();
    this.root.dataset["drawn"] = String(performance.timeOrigin + performance.now());
    this.root.dataset["sequence"] = String(this.#store.sequence);
  }
}

function keyOf(kind: SummaryKind, tag: string): string {
  return `${kind} ${tag}`;
}
