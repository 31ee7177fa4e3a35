// A trace in a page: what ran when, from all steps down to one kernel, and what is said of a call.
//
// Everything happens here, in the page: the kernel may be busy or gone.

import { PageSelection } from "../core/page_selection.js";
import { inflate } from "../core/packing.js";
import { TimeWindow } from "../core/time_window.js";
import { Timeline, another, firstAfter, nearest, readTimeline, search, worksOf } from "../core/timeline.js";
import { percent, shownText, timeSize } from "../core/words.js";
import { element, icon, keepKeys } from "./dom.js";
import { listenToPointer } from "./pointer.js";
import { Theme, onThemeChange, readTheme } from "./theme.js";
import { CallPanel, sayCall, sayFound, tipOf } from "./timeline_call.js";
import { TimelinePainter, groupColour } from "./timeline_painter.js";
import { TIMELINE_STYLES } from "./timeline_styles.js";
import { Tip } from "./tip.js";

const ZOOM = 1.5;
const PAN = 0.2; // Of the width.
const HIGHEST = 440; // Pixels of the lanes.

export class TimelineView {
  // No "div": pages of their own stretch these, and lanes are as high as they are.
  readonly root = element("section", { class: "fb-timeline", "aria-label": "timeline" });
  readonly #lanes = element("canvas", { class: "fb-lanes", tabindex: "0", role: "application", "aria-roledescription": "timeline" });
  readonly #overview = element("canvas", { class: "fb-overview", "aria-hidden": "true" });
  readonly #title = element("h3", {});
  readonly #stepNow = element("output", {});
  readonly #foundText = element("span", { class: "fb-found", role: "status" });
  readonly #told = element("span", { class: "fb-hidden", role: "status" });
  readonly #legend = element("ul", { class: "fb-legend", "aria-label": "legend" });
  readonly #colours = element("select", { change: () => this.#colour(Number(this.#colours.value)) });
  readonly #search: HTMLInputElement;
  readonly #panel: CallPanel;
  readonly #tip = new Tip(this.#lanes);
  readonly #seen = new TimeWindow();
  readonly #page: PageSelection;
  readonly #ends: (() => void)[] = [];

  #timeline: Timeline | null = null;
  #painter: TimelinePainter | null = null;
  #theme: Theme;
  #colouring = 0;
  #only: number | null = null;
  #selected: number | null = null;
  #hovered: number | null = null;
  #works: ReadonlySet<number> | null = null;
  #found: Int32Array | null = null;
  #frame = 0;

  /** @param graph the name of its graph in the page, by which views of it find each other; may be empty. */
  constructor(place: HTMLElement, graph = "") {
    this.#panel = new CallPanel({
      zoom: () => this.#zoomTo(this.#selected),
      another: (forward) => this.#toAnother(new Set([this.#timeline!.work[this.#selected!]]), forward),
    });
    this.#search = element("input", {
      type: "text", // Not "search": Lab's own handling of Escape would clear it.
      placeholder: "Search names and types",
      "aria-label": "Search calls by names and types",
      autocomplete: "off",
      spellcheck: "false",
      input: () => this.#find(this.#search.value),
      keydown: (event) => this.#searchKey(event as KeyboardEvent),
    });
    this.root.append(
      element("style", {}, TIMELINE_STYLES), this.#bar(), this.#overview, this.#lanes, this.#legend, this.#panel.root, this.#told,
    );
    keepKeys(this.root);
    place.append(this.root);
    this.#theme = readTheme(this.root);
    this.#page = new PageSelection(graph, (name) => this.#hear(name));
    this.#listen();
  }

  async load(packed: Uint8Array<ArrayBuffer>): Promise<void> {
    const timeline = readTimeline(await inflate(packed));
    this.#timeline = timeline;
    this.#title.replaceChildren(timeline.title, ...(timeline.remark ? [element("span", {}, ` · ${timeline.remark}`)] : []));
    const isEmpty = timeline.work.length === 0;
    for (const part of [this.#lanes, this.#overview, this.#legend]) part.hidden = isEmpty;
    if (isEmpty) {
      this.#panel.root.replaceChildren(element("p", { class: "fb-nothing" }, "No call was traced: runs within the block of sess.trace() are."));
      this.root.dataset["drawn"] = String(performance.timeOrigin + performance.now());
      return;
    }
    this.#painter = new TimelinePainter(this.#lanes, this.#overview, timeline);
    this.#lanes.setAttribute("aria-label", `${timeline.title}. Arrow keys go from call to call.`);
    this.#colours.replaceChildren(...timeline.colourings.map(({ by }, i) => element("option", { value: String(i) }, by)));
    this.#seen.fit(timeline.end);
    this.#panel.show(timeline, null);
    this.#colour(0);
    this.#painter.resize();
  }

  dispose(): void {
    cancelAnimationFrame(this.#frame);
    for (const end of this.#ends) end();
    this.#page.leave();
    this.root.remove();
  }

  #bar(): HTMLElement {
    const button = (label: string, path: string, press: () => void, text = ""): HTMLElement =>
      element("button", { type: "button", title: label, "aria-label": label, click: press }, icon(path), ...(text ? [element("span", {}, text)] : []));
    return element(
      "div",
      { class: "fb-bar", role: "toolbar", "aria-label": "timeline" },
      this.#title,
      this.#search,
      element(
        "div",
        { class: "fb-group" },
        button("Zoom out", "M3 8h10", () => this.#zoom(1 / ZOOM)),
        button("Zoom in", "M3 8h10M8 3v10", () => this.#zoom(ZOOM)),
        button("Show all steps", "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4", () => this.#fit(), "Fit"),
      ),
      element(
        "div",
        { class: "fb-group" },
        button("The step before", "M10 3L5 8l5 5", () => this.#stepBy(-1)),
        this.#stepNow,
        button("The next step", "M6 3l5 5-5 5", () => this.#stepBy(1)),
      ),
      this.#foundText,
      element("label", {}, element("span", {}, "Colours"), this.#colours),
    );
  }

  // What a person does

  #select(call: number | null): void {
    const timeline = this.#timeline;
    if (!timeline) return;
    this.#show(call);
    // What a search found stays as it is while one goes from one of it to the next.
    if (!this.#search.value.trim()) this.#mark(null);
    this.#page.tell(call === null ? null : timeline.works[timeline.work[call]].source);
  }

  #show(call: number | null): void {
    const timeline = this.#timeline!;
    this.#selected = call;
    this.#panel.show(timeline, call);
    this.#told.textContent = call === null ? "" : sayCall(timeline, call);
    if (call !== null) this.#painter?.bringIn(timeline.row[call]);
    this.#redraw();
  }

  /** Select a call, and have it in view. */
  #go(call: number | null): void {
    const timeline = this.#timeline;
    if (!timeline || call === null) return;
    this.#seen.bringIn(timeline.start[call], timeline.stop[call]);
    this.#select(call);
  }

  #zoomTo(call: number | null): void {
    const timeline = this.#timeline;
    if (!timeline || call === null) return;
    const [from, to] = [timeline.start[call], Math.max(timeline.stop[call], timeline.start[call] + 1)];
    this.#seen.show(from - (to - from) * 0.6, to + (to - from) * 0.6);
    this.#redraw();
  }

  #zoom(by: number): void {
    const timeline = this.#timeline;
    if (!timeline) return;
    const middle = this.#selected === null ? null : (timeline.start[this.#selected] + timeline.stop[this.#selected]) / 2;
    const part = middle === null ? 0.5 : (middle - this.#seen.from) / this.#seen.span;
    this.#seen.zoom(by, part >= 0 && part <= 1 ? part : 0.5);
    this.#redraw();
  }

  #fit(): void {
    if (!this.#timeline) return;
    this.#seen.fit(this.#timeline.end);
    this.#redraw();
  }

  #pan(part: number): void {
    this.#seen.pan(part);
    this.#redraw();
  }

  /** Show the next step, or the one before; from all of them the first or the last. */
  #stepBy(by: number): void {
    const { steps } = this.#timeline ?? { steps: [] };
    if (steps.length === 0) return;
    const now = this.#step();
    const next = now === null ? (this.#seen.whole ? (by > 0 ? 0 : steps.length - 1) : this.#nearestStep()) : now + by;
    const { start, end } = steps[Math.min(steps.length - 1, Math.max(0, next))];
    this.#seen.show(start, end);
    this.#redraw();
  }

  /** The step that fills most of what is seen; null if none does. */
  #step(): number | null {
    const near = this.#nearestStep();
    const step = this.#timeline!.steps[near];
    const { from, span } = this.#seen;
    const shared = Math.min(from + span, step.end) - Math.max(from, step.start);
    return shared > span / 2 && !(this.#seen.whole && this.#timeline!.steps.length > 1) ? near : null;
  }

  #nearestStep(): number {
    const { steps } = this.#timeline!;
    const middle = this.#seen.from + this.#seen.span / 2;
    let found = 0;
    steps.forEach(({ start }, i) => {
      if (start <= middle) found = i;
    });
    return found;
  }

  /** Go along a lane, or to the lane above or below. */
  #walk(along: number, across: number): void {
    const timeline = this.#timeline!;
    const { from, span } = this.#seen;
    if (this.#selected === null) {
      // The end of the step before may be seen too.
      const step = this.#step();
      const begin = step === null ? from : Math.max(from, timeline.steps[step].start);
      const first = timeline.rowStart[0] < timeline.rowStart[1] ? firstAfter(timeline, 0, begin) : 0;
      return this.#go(Math.min(first, timeline.work.length - 1));
    }
    const call = this.#selected;
    const row = timeline.row[call];
    if (along !== 0) {
      const next = call + along;
      if (next >= timeline.rowStart[row] && next < timeline.rowStart[row + 1]) this.#go(next);
      return;
    }
    const middle = (timeline.start[call] + timeline.stop[call]) / 2;
    const isSeen = middle >= from && middle <= from + span;
    const next = row + across;
    if (next >= 0 && next < timeline.laneOf.length) this.#go(nearest(timeline, next, isSeen ? middle : from + span / 2));
  }

  #press(event: KeyboardEvent): void {
    if (!this.#timeline || event.ctrlKey || event.metaKey || event.altKey) return;
    const { key, shiftKey } = event;
    if (key === "ArrowLeft") shiftKey ? this.#pan(-PAN) : this.#walk(-1, 0);
    else if (key === "ArrowRight") shiftKey ? this.#pan(PAN) : this.#walk(1, 0);
    else if (key === "ArrowUp") this.#walk(0, -1);
    else if (key === "ArrowDown") this.#walk(0, 1);
    else if (key === "+" || key === "=") this.#zoom(ZOOM);
    else if (key === "-") this.#zoom(1 / ZOOM);
    else if (key === "f" || key === "0") this.#fit();
    else if (key === "Enter") this.#zoomTo(this.#selected);
    else if (key === "PageUp" || key === "PageDown") this.#stepBy(key === "PageUp" ? -1 : 1);
    else if (key === "/") this.#search.focus();
    else if (key === "Escape") this.#clear();
    else return;
    event.preventDefault();
  }

  #clear(): void {
    this.#search.value = "";
    this.#select(null);
  }

  // What stands out

  #find(query: string): void {
    if (!this.#timeline) return;
    this.#mark(query.trim() ? search(this.#timeline, query) : null);
  }

  #searchKey(event: KeyboardEvent): void {
    event.stopPropagation(); // Lab has commands on keys.
    if (event.key === "Enter" && this.#works) this.#toAnother(this.#works, !event.shiftKey);
    else if (event.key === "Escape") {
      this.#clear();
      this.#lanes.focus({ preventScroll: true });
    } else return;
    event.preventDefault();
  }

  #toAnother(works: ReadonlySet<number>, forward: boolean): void {
    this.#go(another(this.#timeline!, works, this.#selected, forward));
  }

  /** Another view of the graph has something else selected. */
  #hear(name: string | null): void {
    if (!this.#timeline) return;
    this.#search.value = "";
    this.#show(null);
    const works = name === null ? null : worksOf(this.#timeline, name);
    this.#mark(works);
    if (name !== null && works) this.#foundText.textContent = `${shownText(name)}: ${works.size > 0 ? sayFound(this.#timeline, this.#found!) : "no call"}`;
  }

  /** Have the calls of some works stand out; null: none does. */
  #mark(works: ReadonlySet<number> | null): void {
    const timeline = this.#timeline!;
    this.#works = works;
    this.#found = null;
    if (works) {
      const found: number[] = [];
      timeline.work.forEach((work, call) => {
        if (works.has(work)) found.push(call);
      });
      this.#found = Int32Array.from(found);
    }
    this.#foundText.textContent = this.#found ? sayFound(timeline, this.#found) : "";
    this.#redraw();
  }

  #colour(colouring: number): void {
    this.#colouring = colouring;
    this.#only = null;
    this.#paint();
  }

  /** Show the colouring in the theme. */
  #paint(): void {
    if (!this.#painter) return;
    this.#painter.paintBy(this.#colouring, this.#theme);
    this.#lanes.style.height = `${Math.min(HIGHEST, this.#painter.height)}px`;
    this.#listGroups();
    this.#redraw();
  }

  #listGroups(): void {
    const timeline = this.#timeline;
    if (!timeline) return;
    const focused = [...this.#legend.querySelectorAll("button")].indexOf(document.activeElement as HTMLButtonElement);
    const { groups } = timeline.colourings[this.#colouring];
    const total = groups.reduce((sum, { busy }) => sum + busy, 0) || 1;
    const items = groups.map(({ label, busy }, i) => {
      const swatch = element("i", { "aria-hidden": "true" });
      swatch.style.background = groupColour(timeline, this.#colouring, i, this.#theme.dark);
      const choose = (): void => {
        this.#only = this.#only === i ? null : i;
        this.#listGroups();
        this.#redraw();
      };
      return element(
        "li",
        {},
        element(
          "button",
          { type: "button", title: `busy ${timeSize(busy / 1e9)}; click: let this alone stand out`, "aria-pressed": String(this.#only === i), click: choose },
          swatch,
          element("b", {}, shownText(label)),
          element("span", {}, percent(busy / total)),
        ),
      );
    });
    this.#legend.replaceChildren(...items);
    if (focused >= 0) this.#legend.querySelectorAll("button")[focused]?.focus();
  }

  // How it is drawn

  #redraw(): void {
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    this.#frame = 0;
    const [timeline, painter] = [this.#timeline, this.#painter];
    if (!timeline || !painter) return;
    const step = this.#step();
    this.#stepNow.textContent = step === null ? (this.#seen.whole ? "all steps" : `${timeSize(this.#seen.span / 1e9)}`) : `step ${step.toLocaleString("en-US")}`;
    painter.draw(this.#seen, { selected: this.#selected, hovered: this.#hovered, found: this.#found, only: this.#only });
    this.root.dataset["drawn"] = String(performance.timeOrigin + performance.now());
  }

  #listen(): void {
    this.#lanes.addEventListener("keydown", (event) => this.#press(event));
    listenToPointer(this.#lanes, {
      press: () => this.#lanes.focus({ preventScroll: true }),
      pan: (dx, dy) => {
        this.#painter?.scroll(-dy);
        this.#pan(-(this.#painter?.shareOf(dx) ?? 0));
      },
      click: (x, y) => this.#select(this.#at(x, y)),
      doubleClick: (x, y) => this.#zoomTo(this.#at(x, y)),
      hover: (at) => this.#hover(at),
      zoom: (by, x) => {
        this.#tip.hide();
        this.#seen.zoom(by, this.#painter?.shareAt(x) ?? 0);
        this.#redraw();
      },
      // A page that is scrolled past stays a page: the wheel is the view's once it was clicked.
      takesWheel: (event) => this.#takesWheel(event),
    });
    this.#listenToOverview();
    const sized = new ResizeObserver(() => {
      this.#painter?.resize();
      // A canvas that has another size is empty: drawn at once, nothing flickers.
      this.#draw();
    });
    sized.observe(this.#lanes);
    this.#ends.push(
      () => sized.disconnect(),
      onThemeChange(this.root, () => {
        this.#theme = readTheme(this.root);
        this.#paint();
      }),
    );
  }

  /** Whether a wheel zooms; one that goes sideways moves. */
  #takesWheel(event: WheelEvent): boolean {
    if (!event.ctrlKey && !event.metaKey && !this.root.contains(document.activeElement)) return false;
    const sideways = event.shiftKey ? event.deltaY : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
    if (!sideways) return true;
    event.preventDefault();
    this.#pan(this.#painter?.shareOf(sideways) ?? 0);
    return false;
  }

  #listenToOverview(): void {
    const overview = this.#overview;
    const move = (event: PointerEvent): void => {
      if (!this.#timeline || !overview.hasPointerCapture(event.pointerId)) return;
      this.#seen.centre((event.offsetX / overview.clientWidth) * this.#timeline.end);
      this.#redraw();
    };
    overview.addEventListener("pointerdown", (event) => {
      overview.setPointerCapture(event.pointerId);
      move(event);
    });
    overview.addEventListener("pointermove", move);
  }

  #at(x: number, y: number): number | null {
    return this.#painter?.callAt(x, y, this.#seen) ?? null;
  }

  #hover(at: readonly [number, number] | null): void {
    const call = at && this.#at(...at);
    this.#lanes.classList.toggle("fb-over", call !== null);
    if (call !== this.#hovered) {
      this.#hovered = call;
      this.#redraw();
    }
    if (at === null || call === null) this.#tip.hide();
    else this.#tip.show(...at, tipOf(this.#timeline!, call));
  }
}
