// The histograms of one tag over time: ridges on a canvas, the latest in front, one picture per run.

import { numberText, tickTexts } from "../core/axes.js";
import { Ridges, ridgesOf } from "../core/ridges.js";
import { runPaint } from "../core/run_colours.js";
import { HistogramValue, Series } from "../core/summaries.js";
import { element } from "./dom.js";
import { Card, Shown, placeText, runName, tickText } from "./summary_card.js";
import { scaleOf, smallFont } from "./theme.js";
import { Tip } from "./tip.js";

const HEIGHT = 190;
const BINS = 48;
const MARGIN = { left: 10, right: 58, top: 8, bottom: 22 };
const HILL = 0.42; // How much of the height the greatest hill takes.

export class HistogramCard implements Card<HistogramValue> {
  readonly root = element("div", { class: "fb-histograms" });
  readonly headline = "";
  readonly #panels = new Map<number, Panel>();

  constructor(readonly tag: string) {}

  draw(shown: Shown<HistogramValue>): void {
    for (const [run, panel] of this.#panels) {
      if (shown.series.some((series) => series.run === run)) continue;
      panel.dispose();
      this.#panels.delete(run);
    }
    for (const series of shown.series) {
      let panel = this.#panels.get(series.run);
      if (!panel) {
        panel = new Panel(this.tag);
        this.#panels.set(series.run, panel);
        this.root.append(panel.root);
      }
      panel.draw(series, shown);
    }
  }

  resize(): void {
    for (const panel of this.#panels.values()) panel.redraw();
  }

  dispose(): void {
    for (const panel of this.#panels.values()) panel.dispose();
    this.root.remove();
  }
}

/** The histograms of one run. */
class Panel {
  readonly root = element("div", { class: "fb-plot" });
  readonly #name = element("div", {});
  readonly #canvas = element("canvas", { role: "img" });
  readonly #tip = new Tip(this.#canvas);
  readonly #note = element("p", { class: "fb-note", hidden: true });
  readonly #cut = element("p", { class: "fb-note fb-faint", hidden: true }, "The fullest bin is cut, to show the others");
  #series: Series<HistogramValue> | null = null;
  #shown: Shown<HistogramValue> | null = null;
  #ridges: Ridges | null = null;
  #known = -1;
  #active = -1;

  constructor(readonly tag: string) {
    this.#canvas.style.height = `${HEIGHT}px`;
    this.root.append(this.#name, this.#canvas, this.#cut, this.#note);
    this.#canvas.addEventListener("pointermove", (event) => this.#hover(event.offsetX, event.offsetY));
    this.#canvas.addEventListener("pointerleave", () => this.#hover(-1, -1));
  }

  draw(series: Series<HistogramValue>, shown: Shown<HistogramValue>): void {
    this.#shown = shown;
    if (this.#series !== series || this.#known !== series.version) {
      this.#series = series;
      this.#known = series.version;
      this.#ridges = ridgesOf(series.values, BINS);
    }
    this.#name.replaceChildren(...(shown.runs.length > 1 ? [runName(shown.runs, series.run, shown.look)] : []));
    const lost = series.values.reduce((sum, value) => sum + value.lost, 0);
    this.#note.textContent = lost > 0 ? `${lost.toLocaleString("en-US")} values were not finite` : "";
    this.#note.hidden = lost === 0;
    const { low, high, peak, bins } = this.#ridges!;
    this.#cut.hidden = !bins.some((row) => row.some((count) => count > peak));
    this.#canvas.setAttribute(
      "aria-label",
      `${this.tag}: ${series.values.length} histograms of values from ${numberText(low)} to ${numberText(high)}`.slice(0, 600),
    );
    this.redraw();
  }

  /** The margins with text in them, which grow with it. */
  get #margin(): { readonly right: number; readonly bottom: number } {
    const scale = scaleOf(this.#shown!.look.theme);
    return { right: MARGIN.right * scale, bottom: MARGIN.bottom * scale };
  }

  /** Where the foot of each ridge is, from behind to the front. */
  #feet(): number[] {
    const { axis } = this.#shown!.look;
    const { steps, times } = this.#series!;
    const at = axis === "step" ? steps : times;
    const [first, last] = [Math.min(...at), Math.max(...at)];
    const span = HEIGHT - this.#margin.bottom - MARGIN.top;
    const back = MARGIN.top + span * HILL;
    return at.map((value) => back + (last > first ? (value - first) / (last - first) : 1) * span * (1 - HILL));
  }

  redraw(): void {
    const [shown, series, ridges] = [this.#shown, this.#series, this.#ridges];
    const width = this.#canvas.clientWidth;
    if (!shown || !series || !ridges || width === 0) return;
    const { theme } = shown.look;
    const ratio = devicePixelRatio;
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = Math.round(HEIGHT * ratio);
    const context = this.#canvas.getContext("2d")!;
    context.scale(ratio, ratio);
    context.font = smallFont(theme);
    const feet = this.#feet();
    const room = width - MARGIN.left - this.#margin.right;
    const bottom = HEIGHT - this.#margin.bottom;
    const xOf = (bin: number): number => MARGIN.left + ((bin + 0.5) / BINS) * room;
    const tall = ridges.peak > 0 ? ((bottom - MARGIN.top) * HILL) / ridges.peak : 0;
    const { colour } = runPaint(series.run, theme.dark);
    const order = feet.map((_, i) => i).sort((a, b) => feet[a] - feet[b] || a - b);
    order.forEach((i, rank) => {
      const foot = feet[i];
      const near = order.length > 1 ? rank / (order.length - 1) : 1;
      const hill = new Path2D();
      const yOf = (bin: number): number => foot - Math.min(ridges.bins[i][bin], ridges.peak) * tall;
      hill.moveTo(xOf(0), yOf(0));
      for (let bin = 1; bin < BINS; bin++) hill.lineTo(xOf(bin), yOf(bin));
      const ground = new Path2D(hill);
      ground.lineTo(xOf(BINS - 1), foot);
      ground.lineTo(xOf(0), foot);
      ground.closePath();
      context.fillStyle = theme.panel;
      context.fill(ground);
      context.globalAlpha = i === this.#active ? 0.85 : 0.12 + 0.4 * near;
      context.fillStyle = colour;
      context.fill(ground);
      context.globalAlpha = i === this.#active ? 1 : 0.35 + 0.5 * near;
      context.lineWidth = i === this.#active ? 1.8 : 1;
      context.strokeStyle = colour;
      context.stroke(hill);
      context.globalAlpha = 1;
    });
    this.#axes(context, shown, series, ridges, feet, order, width);
  }

  #axes(
    context: CanvasRenderingContext2D,
    shown: Shown<HistogramValue>,
    series: Series<HistogramValue>,
    ridges: Ridges,
    feet: readonly number[],
    order: readonly number[],
    width: number,
  ): void {
    const { theme, axis } = shown.look;
    const bottom = HEIGHT - this.#margin.bottom;
    const right = width - this.#margin.right;
    context.fillStyle = theme.faint;
    context.strokeStyle = theme.border;
    context.textBaseline = "middle";
    let free = Infinity;
    for (const i of [...order].reverse()) {
      if (feet[i] > free) continue;
      free = feet[i] - 15 * scaleOf(theme);
      context.fillText(tickText(axis, series.steps[i], series.times[i], shown.startOf(series.run)), right + 8, feet[i]);
    }
    context.beginPath();
    context.moveTo(MARGIN.left, bottom + 0.5);
    context.lineTo(right, bottom + 0.5);
    context.stroke();
    const count = Math.max(2, Math.min(6, Math.floor((right - MARGIN.left) / (52 * scaleOf(theme)))));
    const ticks = niceTicks(ridges.low, ridges.high, count);
    const texts = tickTexts(ticks);
    context.textBaseline = "top";
    ticks.forEach((tick, i) => {
      const x = MARGIN.left + ((tick - ridges.low) / (ridges.high - ridges.low)) * (right - MARGIN.left);
      const half = context.measureText(texts[i]).width / 2;
      context.fillText(texts[i], Math.max(0, x - half), bottom + 6);
    });
  }

  #hover(x: number, y: number): void {
    const [shown, series, ridges] = [this.#shown, this.#series, this.#ridges];
    if (!shown || !series || !ridges) return;
    const feet = this.#feet();
    const room = this.#canvas.clientWidth - MARGIN.left - this.#margin.right;
    const bin = Math.floor(((x - MARGIN.left) / room) * BINS);
    const isInside = x >= 0 && bin >= 0 && bin < BINS && feet.length > 0;
    let active = -1;
    if (isInside) feet.forEach((foot, i) => (active = active < 0 || Math.abs(foot - y) <= Math.abs(feet[active] - y) ? i : active));
    if (active !== this.#active) {
      this.#active = active;
      this.redraw();
    }
    if (active < 0) return this.#tip.hide();
    const width = (ridges.high - ridges.low) / BINS;
    const [from, to] = [ridges.low + bin * width, ridges.low + (bin + 1) * width];
    this.#tip.show(
      x,
      y,
      element("div", {}, placeText(shown.look.axis, series.steps[active], series.times[active], shown.startOf(series.run))),
      element("div", { class: "fb-faint" }, `about ${numberText(ridges.bins[active][bin], 3)} from ${numberText(from, 3)} to ${numberText(to, 3)}`),
    );
  }

  dispose(): void {
    this.#tip.dispose();
    this.root.remove();
  }
}

/** Round numbers within a range, about so many. */
function niceTicks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((part) => part * power).find((each) => each >= rough)!;
  const found: number[] = [];
  for (let tick = Math.ceil(low / step); tick * step <= high; tick++) found.push(tick * step);
  return found;
}
