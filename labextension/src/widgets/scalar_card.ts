// The curves of one tag: a chart of uPlot's, with a crosshair that reads every run.

import uPlot from "uplot";

import { durationText, logTickTexts, logTicks, numberText, padded, positions, stepText, tickTexts } from "../core/axes.js";
import { Curve, ascending, merged } from "../core/merging.js";
import { RunPaint, curvePaint } from "../core/run_colours.js";
import { smoothed } from "../core/smoothing.js";
import { chartsOf, inOrder } from "../core/splits.js";
import { Series } from "../core/summaries.js";
import { counted } from "../core/words.js";
import { element } from "./dom.js";
import { Card, Shown, lineOf, placeText, runName, swatchOf } from "./summary_card.js";
import { scaleOf, smallFont } from "./theme.js";
import { ticksWidth } from "./ticks_width.js";
import { Tip } from "./tip.js";

const HEIGHT = 176;
const FAINT = 0.28; // How much of a curve is left behind the smoothed one.
const MOST_ROWS = 12; // Of the tip.
const LARGEST = 1e300;
const MARK = 4; // Half the size of a mark for what is no number.

/** A value that has no place on the axis, and why. */
interface Lost {
  readonly x: number;
  readonly colour: string;
  readonly value: number;
}

/** A run's points in the order of the axis. */
interface Line extends Curve {
  readonly run: number;
  readonly series: Series<number>;
  /** The part of the data that it is of; mostly empty. */
  readonly split: string;
  readonly paint: RunPaint;
  readonly raw: ArrayLike<number>;
  /** For each point its number in the series. */
  readonly order: Int32Array | null;
}

export class ScalarCard implements Card<number> {
  readonly root = element("div", { class: "fb-plot", tabindex: "0", role: "img" });
  headline = "";
  readonly #place = element("div", {});
  readonly #tip = new Tip(this.root);
  readonly #legend = element("div", { class: "fb-splits", hidden: true });
  readonly #note = element("p", { class: "fb-note", hidden: true });
  readonly #said = element("span", { class: "fb-hidden", "aria-live": "polite" });
  #plot: uPlot | null = null;
  #structure = "";
  #shown: Shown<number> | null = null;
  #lines: Line[] = [];
  #lost: Lost[] = [];

  constructor(readonly tag: string) {
    this.root.append(this.#legend, this.#place, this.#note, this.#said);
    this.root.addEventListener("keydown", (event) => this.#key(event));
    this.root.addEventListener("blur", () => this.#plot?.setCursor({ left: -10, top: -10 }));
  }

  draw(shown: Shown<number>): void {
    this.#shown = shown;
    const { look, series } = shown;
    const charts = chartsOf(series.map(({ tag }) => tag));
    const splits = inOrder([...charts.values()].map(({ split }) => split));
    const isAlone = shown.runs.length < 2;
    this.#lines = series
      .map((each) => {
        const { split } = charts.get(each.tag)!;
        return lineOfSeries(each, split, curvePaint(each.run, splits.indexOf(split), isAlone, look.theme.dark), shown);
      })
      .sort((a, b) => a.run - b.run || splits.indexOf(a.split) - splits.indexOf(b.split));
    this.#lost = [];
    let below = 0;
    const curves: Curve[] = this.#lines.flatMap((line) =>
      look.smoothing > 0 ? [{ x: line.x, y: line.raw }, line] : [line],
    );
    const { x, columns } = merged(curves);
    const isOn = (value: number): boolean => Number.isFinite(value) && (!look.log || value > 0);
    for (const line of this.#lines) {
      for (let i = 0; i < line.x.length; i++) {
        const value = line.raw[i];
        if (!Number.isFinite(value)) this.#lost.push({ x: line.x[i], colour: line.paint.colour, value });
        else if (look.log && value <= 0) below += 1;
      }
    }
    const data = [
      x,
      ...columns.map((column) => column.map((value) => (value === undefined ? value : isOn(value) ? bounded(value) : null))),
    ] as uPlot.AlignedData;
    const structure = JSON.stringify([look.axis, look.log, look.smoothing > 0, look.theme, this.#lines.map(({ run, split, paint }) => [run, split, paint])]);
    if (!this.#plot || structure !== this.#structure) {
      this.#structure = structure;
      this.#plot?.destroy();
      this.#plot = new uPlot(this.#options(shown), data, this.#place);
    } else this.#setData(data);
    this.#tell(shown, below);
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

  /** New points; a part that a person has zoomed into stays in view. */
  #setData(data: uPlot.AlignedData): void {
    const plot = this.#plot!;
    const { min, max } = plot.scales["x"];
    const before = plot.data[0];
    const isZoomed = before.length > 1 && (min! > before[0] || max! < before[before.length - 1]);
    plot.batch(() => {
      plot.setData(data, !isZoomed);
      if (isZoomed) plot.setScale("x", { min: min!, max: max! });
    });
  }

  #options(shown: Shown<number>): uPlot.Options {
    const { look } = shown;
    const { theme } = look;
    const [font, scale] = [smallFont(theme), scaleOf(theme)];
    const series: uPlot.Series[] = [{}];
    for (const { paint: { colour, dash } } of this.#lines) {
      const line = { stroke: colour, dash: [...dash], width: 1.6, pxAlign: 0, points: { size: 4.5, width: 1, fill: colour } };
      if (look.smoothing > 0) series.push({ ...line, alpha: FAINT, width: 1.2, points: { show: false } });
      series.push(line);
    }
    const grid = { stroke: theme.border, width: 1 };
    const axis = { font, stroke: theme.faint, grid, ticks: { show: false }, gap: 5 };
    return {
      width: this.#place.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      padding: [8, 12, 0, 0],
      scales: {
        x: { time: look.axis === "time", range: (_, min, max) => (min === max ? [min - 0.5, max + 0.5] : [min, max]) },
        y: { distr: look.log ? 3 : 1, range: (_, min, max) => padded(min, max, look.log) },
      },
      series,
      axes: [
        { ...axis, grid: { show: false }, space: 46 * scale, size: 24 * scale, ...this.#xValues(shown) },
        {
          ...axis,
          space: 30 * scale,
          // Without a filter of its own the chart would drop most of these.
          ...(look.log
            ? { splits: (_plot, _axis, low, high) => logTicks(low, high, 5), filter: (_plot, ticks) => ticks }
            : {}),
          values: (_, ticks) => (look.log ? logTickTexts(ticks) : tickTexts(ticks)),
          size: ticksWidth(theme, 24, 12),
        },
      ],
      cursor: {
        y: false,
        points: { size: 7, width: 1.5 },
        drag: { x: true, y: false, dist: 4 },
      },
      hooks: { setCursor: [() => this.#read()], draw: [(plot) => this.#mark(plot)] },
    };
  }

  #xValues({ look }: Shown<number>): Partial<uPlot.Axis> {
    if (look.axis === "time") return {};
    const text = look.axis === "step" ? stepText : durationText;
    const durations = [1e-3, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 432_000, 864_000];
    return {
      values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : text(tick))),
      ...(look.axis === "relative" ? { incrs: durations } : {}),
    };
  }

  /** Mark what is no number: at the top what is too large, at the bottom the rest. */
  #mark(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const size = MARK * devicePixelRatio;
    ctx.save();
    ctx.lineWidth = 1.5 * devicePixelRatio;
    for (const { x, colour, value } of this.#lost) {
      const at = plot.valToPos(x, "x", true);
      if (!(at >= bbox.left - 1 && at <= bbox.left + bbox.width + 1)) continue;
      ctx.fillStyle = ctx.strokeStyle = colour;
      const y = value > 0 ? bbox.top + size : bbox.top + bbox.height - size;
      ctx.beginPath();
      if (Number.isNaN(value)) {
        ctx.moveTo(at - size, y - size);
        ctx.lineTo(at + size, y + size);
        ctx.moveTo(at + size, y - size);
        ctx.lineTo(at - size, y + size);
        ctx.stroke();
      } else {
        const tip = value > 0 ? y - size : y + size;
        ctx.moveTo(at, tip);
        ctx.lineTo(at - size, 2 * y - tip);
        ctx.lineTo(at + size, 2 * y - tip);
        ctx.fill();
      }
    }
    ctx.restore();
  }

  /** What the curves say in words: beside the title, below the chart, and to a screen reader. */
  #tell(shown: Shown<number>, below: number): void {
    const last = (line: Line): number => line.raw[line.raw.length - 1];
    this.headline = this.#lines.length === 1 && this.#lines[0].raw.length > 0 ? numberText(last(this.#lines[0])) : "";
    const kinds = [
      ["NaN", this.#lost.filter(({ value }) => Number.isNaN(value)).length],
      ["infinite", this.#lost.filter(({ value }) => !Number.isNaN(value)).length],
    ] as const;
    const notes = kinds.filter(([, count]) => count > 0).map(([kind, count]) => `${count.toLocaleString("en-US")} ${kind}`);
    if (below > 0) notes.push(`${counted(below, "value")} of 0 or less: not on a logarithmic axis`);
    this.#note.textContent = notes.join(" · ");
    this.#note.hidden = notes.length === 0;
    const told = this.#lines.map((line) => [shown.runs[line.run]?.label ?? "", line.split, numberText(last(line))].filter(Boolean).join(" "));
    this.#legend.replaceChildren(...this.#splits(shown.runs.length < 2));
    this.#legend.hidden = this.#legend.childElementCount === 0;
    this.root.setAttribute("aria-label", `${this.tag}: ${told.slice(0, 12).join(", ")}`.slice(0, 600));
  }

  /** Read the runs where the crosshair is. */
  #read(): void {
    const plot = this.#plot;
    const shown = this.#shown;
    const left = plot?.cursor.left ?? -1;
    if (!plot || !shown || left < 0 || this.#lines.length === 0) return this.#tip.hide();
    const at = plot.posToVal(left, "x");
    const { look } = shown;
    const rows = this.#lines.flatMap((line) => {
      const i = nearest(line.x, at);
      if (i < 0) return [];
      const { steps, times } = line.series;
      const point = line.order ? line.order[i] : i;
      const place = placeText(look.axis, steps[point], times[point], shown.startOf(line.run));
      return [{ line, place, raw: line.raw[i], value: line.y[i] }];
    });
    const height = (value: number): number => (Number.isNaN(value) ? -Infinity : value);
    rows.sort((a, b) => (height(b.value) > height(a.value) ? 1 : height(b.value) < height(a.value) ? -1 : 0));
    this.#said.textContent =
      document.activeElement === this.root
        ? rows.map(({ line, place, value }) => `${this.#nameOf(line)} ${numberText(value)} at ${place}`).join(", ").slice(0, 600)
        : "";
    const { offsetLeft, offsetTop } = plot.over;
    this.#tip.show(offsetLeft + left, offsetTop, ...this.#told(rows));
  }

  #nameOf(line: Line): string {
    return [this.#shown!.runs.length > 1 ? this.#shown!.runs[line.run].label : "", line.split].filter(Boolean).join(" ");
  }

  /** A legend of the parts of the data, with the last values of a run that is alone. */
  #splits(isAlone: boolean): HTMLElement[] {
    const firsts = this.#lines.filter(({ split }, i) => this.#lines.findIndex((line) => line.split === split) === i);
    if (firsts.length < 2) return [];
    return firsts.map(({ split, paint, raw }) =>
      element(
        "span",
        { class: "fb-run" },
        swatchOf(isAlone ? paint : { ...paint, colour: "currentColor" }),
        element("span", {}, lineOf(split || this.tag, 30)),
        ...(isAlone && raw.length > 0 ? [element("b", {}, numberText(raw[raw.length - 1]))] : []),
      ),
    );
  }

  /** The rows of the tip; where all points lie is said once, if they lie together. */
  #told(rows: readonly { line: Line; place: string; raw: number; value: number }[]): HTMLElement[] {
    const { runs, look } = this.#shown!;
    const isSplit = this.#lines.some(({ split }) => split);
    const areTogether = rows.every(({ place }) => place === rows[0].place);
    const cell = (kind: string, ...inside: (Node | string)[]): HTMLElement => element("td", { class: kind }, ...inside);
    const lines = rows.slice(0, MOST_ROWS).map(({ line, place, raw, value }) =>
      element(
        "tr",
        {},
        ...(runs.length > 1 ? [cell("", runName(runs, line.run, look))] : []),
        ...(isSplit ? [cell("", ...(runs.length > 1 ? [] : [swatchOf(line.paint), " "]), lineOf(line.split))] : []),
        cell("fb-number", numberText(value)),
        ...(look.smoothing > 0 ? [cell("fb-number fb-faint", numberText(raw))] : []),
        ...(areTogether ? [] : [cell("fb-faint", place)]),
      ),
    );
    const rest = rows.length - lines.length;
    return [
      ...(areTogether ? [element("div", { class: "fb-faint" }, rows[0]?.place ?? "")] : []),
      element("table", {}, ...lines),
      ...(rest > 0 ? [element("div", { class: "fb-faint" }, `and ${rest.toLocaleString("en-US")} more`)] : []),
    ];
  }

  #key(event: KeyboardEvent): void {
    const plot = this.#plot;
    if (!plot) return;
    const x = plot.data[0];
    const from = plot.cursor.idx ?? null;
    const [first, last] = plot.series[0].idxs ?? [0, x.length - 1];
    const to: Record<string, number> = {
      ArrowLeft: from === null ? last : Math.max(first, from - 1),
      ArrowRight: from === null ? first : Math.min(last, from + 1),
      Home: first,
      End: last,
    };
    if (event.key in to) {
      const left = plot.valToPos(x[to[event.key]], "x");
      plot.setCursor({ left, top: 0 });
    } else if (event.key === "Escape") plot.setData(plot.data, true);
    else return;
    event.preventDefault();
    event.stopPropagation(); // Lab has commands on keys.
  }
}

/** What is beyond is drawn there: differences of such numbers overflow. */
function bounded(value: number): number {
  return Math.min(LARGEST, Math.max(-LARGEST, value));
}

function lineOfSeries(series: Series<number>, split: string, paint: RunPaint, { look, startOf }: Shown<number>): Line {
  const start = look.axis === "relative" ? startOf(series.run) : 0;
  const at = positions(look.axis, series.steps, series.times, start);
  const order = ascending(at);
  const sorted = (list: readonly number[]): ArrayLike<number> => (order ? Float64Array.from(order, (i) => list[i]) : list);
  const raw = sorted(series.values);
  return { run: series.run, series, split, paint, x: sorted(at), raw, y: look.smoothing > 0 ? smoothed(raw, look.smoothing) : raw, order };
}

/** The number of the value that is nearest in an ascending list; -1 if it is empty. */
function nearest(values: ArrayLike<number>, wanted: number): number {
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low > 0 && wanted - values[low - 1] <= values[low] - wanted ? low - 1 : Math.min(low, values.length - 1);
}
