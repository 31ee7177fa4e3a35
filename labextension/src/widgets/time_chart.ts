// Lines over the time that has passed until now, or an end: a chart of uPlot's, with a crosshair that reads them.

import uPlot from "uplot";

import { durationText, numberText, tickTexts } from "../core/axes.js";
import { element } from "./dom.js";
import { Theme, scaleOf, smallFont } from "./theme.js";
import { ticksWidth } from "./ticks_width.js";
import { Tip } from "./tip.js";

const HEIGHT = 104;

export interface TimeLine {
  readonly label: string;
  readonly colour: string;
  /** How strongly what is below it is filled, from 0 to 1. */
  readonly filled: number;
  readonly values: ArrayLike<number>;
}

export class TimeChart {
  readonly root = element("div", { class: "fb-plot", tabindex: "0", role: "img" });
  readonly #place = element("div", {});
  readonly #said = element("span", { class: "fb-hidden", "aria-live": "polite" });
  readonly #tip = new Tip(this.root);
  #plot: uPlot | null = null;
  #lines: readonly TimeLine[] = [];
  #times: readonly number[] = [];
  #most = 1;
  #hasEnded = false;
  #ticks: number[] | undefined;
  #structure = "";

  constructor() {
    this.root.append(this.#place, this.#said);
    this.root.addEventListener("keydown", (event) => this.#key(event));
    this.root.addEventListener("blur", () => this.#plot?.setCursor({ left: -10, top: -10 }));
  }

  /**
   * Draw lines.
   *
   * @param said what the chart says in words.
   * @param times of the points: up to zero, which is now, or the end.
   * @param most the upper end of the vertical axis.
   * @param hasEnded whether it is the end.
   * @param ticks the numbers on it; by default round ones.
   */
  draw(said: string, times: readonly number[], lines: readonly TimeLine[], most: number, theme: Theme, hasEnded: boolean, ticks?: number[]): void {
    this.root.setAttribute("aria-label", said);
    [this.#lines, this.#times, this.#most, this.#hasEnded, this.#ticks] = [lines, times, most, hasEnded, ticks];
    const data = [times, ...lines.map(({ values }) => Array.from(values))] as uPlot.AlignedData;
    const structure = JSON.stringify([theme, ticks !== undefined, lines.map(({ label, colour }) => [label, colour])]);
    if (this.#plot && structure === this.#structure) return this.#plot.setData(data);
    this.#structure = structure;
    this.#plot?.destroy();
    this.#plot = new uPlot(this.#options(theme), data, this.#place);
  }

  resize(): void {
    this.#plot?.setSize({ width: this.#place.clientWidth, height: HEIGHT });
  }

  dispose(): void {
    this.#plot?.destroy();
    this.#plot = null;
    this.#tip.dispose();
    this.root.remove();
  }

  #options(theme: Theme): uPlot.Options {
    const [font, scale] = [smallFont(theme), scaleOf(theme)];
    const grid = { stroke: theme.border, width: 1 };
    const axis = { font, stroke: theme.faint, grid, ticks: { show: false }, gap: 5 };
    const series = this.#lines.map(({ colour, filled }) => ({
      stroke: colour,
      width: 1.6,
      pxAlign: 0,
      points: { show: false },
      ...(filled > 0 ? { fill: faded(colour, filled) } : {}),
    }));
    return {
      width: this.#place.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      padding: [8, 14, 0, 0],
      scales: {
        x: { time: false, range: () => [Math.min(-1, this.#times[0] ?? 0), 0] },
        y: { range: () => [0, this.#most] },
      },
      series: [{}, ...series],
      axes: [
        { ...axis, grid: { show: false }, space: 80 * scale, size: 22 * scale, incrs: [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120], values: (_, ticks) => ticks.map((tick) => this.#moment(tick)) },
        {
          ...axis,
          space: 28 * scale,
          ...(this.#ticks ? { splits: () => this.#ticks! } : {}),
          values: (_, ticks) => tickTexts(ticks),
          size: ticksWidth(theme, 18, 10),
        },
      ],
      cursor: { y: false, points: { size: 7, width: 1.5 }, drag: { x: false, y: false } },
      hooks: { setCursor: [() => this.#read()] },
    };
  }

  /** Say what the lines are at, where the crosshair is. */
  #read(): void {
    const plot = this.#plot;
    const at = plot?.cursor.idx ?? null;
    const left = plot?.cursor.left ?? -1;
    if (!plot || at === null || left < 0 || at >= this.#times.length) return this.#tip.hide();
    const rows = this.#lines.map(({ label, colour, values }) => {
      const swatch = element("i", { class: "fb-swatch", "aria-hidden": "true" });
      swatch.style.borderTopColor = colour;
      const name = element("span", { class: "fb-run" }, swatch, label);
      return element("tr", {}, element("td", {}, name), element("td", { class: "fb-number" }, numberText(values[at], 3)));
    });
    const place = this.#moment(this.#times[at]);
    const { offsetLeft, offsetTop } = plot.over;
    this.#tip.show(offsetLeft + left, offsetTop, element("div", { class: "fb-faint" }, place), element("table", {}, ...rows));
    const told = this.#lines.map(({ label, values }) => `${label} ${numberText(values[at], 3)}`);
    this.#said.textContent = document.activeElement === this.root ? `${place}: ${told.join(", ")}` : "";
  }

  /** When: "now", "12 s ago"; of what has ended "end", "12 s before". */
  #moment(time: number | null): string {
    if (time === null) return "";
    if (time === 0) return this.#hasEnded ? "end" : "now";
    return `${durationText(-time)} ${this.#hasEnded ? "before" : "ago"}`;
  }

  #key(event: KeyboardEvent): void {
    const last = this.#times.length - 1;
    const from = this.#plot?.cursor.idx ?? null;
    const to: Record<string, number> = {
      ArrowLeft: from === null ? last : Math.max(0, from - 1),
      ArrowRight: from === null ? 0 : Math.min(last, from + 1),
      Home: 0,
      End: last,
    };
    if (!this.#plot || last < 0 || !(event.key in to)) return;
    this.#plot.setCursor({ left: this.#plot.valToPos(this.#times[to[event.key]], "x"), top: 0 });
    event.preventDefault();
    event.stopPropagation(); // Lab has commands on keys.
  }
}

function faded(colour: string, share: number): string {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return `rgb(${red} ${green} ${blue} / ${share})`;
}
