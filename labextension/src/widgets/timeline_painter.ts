// Draws a trace on a canvas: a ruler, the names of lanes, and what is in view of the calls.
//
// Lengths are those beside the usual text: where text is larger, all of the canvas is drawn larger.

import { mixed } from "../core/colours.js";
import { runPaint } from "../core/run_colours.js";
import { TimeWindow, timeTicks } from "../core/time_window.js";
import { Timeline, firstAfter, labelOf } from "../core/timeline.js";
import { Window, drawRow } from "../core/timeline_blocks.js";
import { percent, shortened, shownText, timeSize } from "../core/words.js";
import { SMALL, Theme, scaleOf } from "./theme.js";

const GUTTER = 148; // Pixels for the names of lanes.
const RULER = 40;
const [DEVICE, LANE, NEXT] = [32, 24, 15]; // Heights: of a device's first row, of a lane's, of others.
const [BAR, THIN] = [18, 11]; // Of the bars in them; what waits is thin in every row.
const LABEL_ROOM = 26; // Pixels that a bar needs for a name,
const LETTER = 6.1; // and about each letter.
const FEWEST_LETTERS = 12; // Of a name that is shortened: of fewer nothing can be read.
const DELAY_ROOM = 6; // From this width on a bar has the line of its delay.
const MOST_ARROWS = 250;
const ARROW = { line: 0.5, faint: 0.2 }; // How opaque: names below lines stay readable.
const MOST_MARKED = 4000;
const PAPER = { light: "#ffffff", dark: "#14171c" };
const SHARE = { runs: 0.86, waits: 0.3, faint: 0.13 };
const PAD = 12;

export interface Marks {
  readonly selected: number | null;
  readonly hovered: number | null;
  /** The calls that stand out, in their order; null if all do. */
  readonly found: Int32Array | null;
  /** The group that stands out; null if all do. */
  readonly only: number | null;
}

interface Place {
  readonly top: number;
  readonly height: number;
}

export class TimelinePainter {
  readonly #context: CanvasRenderingContext2D;
  readonly #rows: Place[] = [];
  readonly #laneTops: number[] = [];
  readonly #labels: string[];
  readonly #strong: string[] = [];
  readonly #pale: string[] = [];
  readonly #faint: string[] = [];
  readonly #inks: string[] = [];
  readonly #levels: string[][] = [];
  #of: Uint8Array;
  #groups = 0;
  #theme: Theme | null = null;
  /** How many pixels of the page one is here. */
  #scale = 1;
  /** How far the lanes are scrolled. */
  #top = 0;

  constructor(readonly canvas: HTMLCanvasElement, readonly overview: HTMLCanvasElement, readonly timeline: Timeline) {
    this.#context = canvas.getContext("2d")!;
    this.#labels = timeline.works.map((work) => shownText(labelOf(work)));
    this.#of = timeline.colourings[0].of;
    let top = 0;
    timeline.lanes.forEach(({ rows, waits }, lane) => {
      this.#laneTops.push(top);
      const first = this.#isFirst(lane) ? DEVICE : LANE;
      const height = waits ? THIN : BAR;
      for (let i = 0; i < rows; i++) {
        this.#rows.push(i === 0 ? { top: top + (first - height) / 2 - 1, height } : { top: top + first + (i - 1) * NEXT, height: THIN });
      }
      top += first + (rows - 1) * NEXT;
    });
    this.#laneTops.push(top);
  }

  /** Whether a lane is the first of its device. */
  #isFirst(lane: number): boolean {
    const { lanes } = this.timeline;
    return lane === 0 || lanes[lane - 1].device !== lanes[lane].device;
  }

  get #wide(): number {
    return this.canvas.clientWidth / this.#scale;
  }

  get #high(): number {
    return this.canvas.clientHeight / this.#scale;
  }

  get #whole(): number {
    return RULER + this.#laneTops[this.#laneTops.length - 1] + 6;
  }

  /** How high everything is on the page. */
  get height(): number {
    return this.#whole * this.#scale;
  }

  /** Take the colours and the text's size of a theme, and a colouring. */
  paintBy(colouring: number, theme: Theme): void {
    const { groups, of } = this.timeline.colourings[colouring];
    this.#theme = theme;
    this.#scale = scaleOf(theme);
    this.#of = of;
    this.#groups = groups.length;
    const paper = PAPER[theme.dark ? "dark" : "light"];
    groups.forEach((_, i) => {
      const colour = groupColour(this.timeline, colouring, i, theme.dark);
      this.#strong[i] = mixed(paper, colour, SHARE.runs);
      this.#pale[i] = mixed(paper, colour, SHARE.waits);
      this.#faint[i] = mixed(paper, colour, SHARE.faint);
      this.#inks[i] = isBright(this.#strong[i]) ? "#14171c" : "#ffffff";
      this.#levels[i] = [0.34, 0.52, 0.7, SHARE.runs].map((share) => mixed(paper, colour, share));
    });
  }

  /** Fit both canvases to their places. */
  resize(): void {
    const ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.overview]) {
      const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
      if (canvas.width !== width) canvas.width = width;
      if (canvas.height !== height) canvas.height = height;
    }
    this.#scroll(0);
  }

  /** Scroll by pixels of the page. */
  scroll(by: number): void {
    this.#scroll(by / this.#scale);
  }

  #scroll(by: number): void {
    const most = Math.max(0, this.#whole - this.#high);
    this.#top = Math.min(most, Math.max(0, this.#top + by));
  }

  get #room(): number {
    return Math.max(1, this.#wide - GUTTER);
  }

  /** Which part of the time in view pixels of the page are. */
  shareOf(pixels: number): number {
    return pixels / this.#scale / this.#room;
  }

  /** Where in the time in view a place on the canvas is, from 0 to 1. */
  shareAt(x: number): number {
    return Math.max(0, x / this.#scale - GUTTER) / this.#room;
  }

  #windowOf(seen: TimeWindow): Window {
    return { from: seen.from, unit: seen.span / this.#room, width: this.#room };
  }

  #rowAt(y: number): number | null {
    if (y < RULER) return null;
    const at = y - RULER + this.#top;
    const found = this.#rows.findIndex(({ top, height }) => at >= top - 2 && at < top + height + 3);
    return found < 0 ? null : found;
  }

  /** Scroll a row into view. */
  bringIn(row: number): void {
    const { top, height } = this.#rows[row];
    const seen = this.#high - RULER;
    if (top < this.#top) this.#scroll(top - this.#top - 6);
    else if (top + height > this.#top + seen) this.#scroll(top + height - this.#top - seen + 8);
  }

  draw(seen: TimeWindow, marks: Marks): void {
    const theme = this.#theme!;
    const context = this.#context;
    const [width, height] = [this.#wide, this.#high];
    const ratio = (window.devicePixelRatio || 1) * this.#scale;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, width, height);
    context.textBaseline = "alphabetic";
    const shown = this.#windowOf(seen);
    this.#grid(shown, seen, theme);
    context.save();
    context.beginPath();
    context.rect(GUTTER, RULER, width - GUTTER, height - RULER);
    context.clip();
    context.translate(GUTTER, RULER - this.#top);
    context.font = `${SMALL}px ${theme.font}`;
    const isInSight = ({ top, height: high }: Place): boolean => top + high > this.#top && top < this.#top + height - RULER;
    this.#rows.forEach((place, row) => {
      if (isInSight(place)) this.#row(row, place, shown, marks);
    });
    if (marks.found) this.#marked(marks.found, shown);
    this.#arrows(shown, marks, theme);
    if (marks.hovered !== null && marks.hovered !== marks.selected) this.#outline(marks.hovered, shown, theme.faint, 1);
    if (marks.selected !== null) this.#outline(marks.selected, shown, theme.accent, 2);
    context.restore();
    this.#names(theme);
    this.#overview(seen, theme);
  }

  #grid(shown: Window, seen: TimeWindow, theme: Theme): void {
    const context = this.#context;
    const [width, height] = [this.#wide, this.#high];
    const x = (moment: number): number => GUTTER + (moment - shown.from) / shown.unit;
    context.fillStyle = theme.panel;
    context.fillRect(0, 0, width, RULER);
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, width - GUTTER, height);
    context.clip();
    // Steps: every other one has a ground of its own, and each its name where there is room.
    context.font = `600 ${SMALL}px ${theme.font}`;
    this.timeline.steps.forEach(({ start, end }, i) => {
      const [left, right] = [Math.max(GUTTER, x(start)), Math.min(width, x(end))];
      if (right < GUTTER || left > width) return;
      context.fillStyle = theme.dark ? "rgb(255 255 255 / 3.5%)" : "rgb(0 0 0 / 2.6%)";
      if (i % 2 === 0) context.fillRect(left, RULER, Math.max(0.5, right - left), height - RULER);
      context.fillStyle = theme.border;
      if (right - left > 12) context.fillRect(x(start), 2, 1, height);
      context.fillStyle = theme.ink;
      const name = `step ${i.toLocaleString("en-US")}`;
      const long = `${name} · ${timeSize((end - start) / 1e9)}`;
      const [room, letters] = [right - left - 10, LETTER + 0.6];
      if (room > long.length * letters) context.fillText(long, left + 5, 14);
      else if (room > name.length * letters) context.fillText(name, left + 5, 14);
    });
    context.font = `${SMALL}px ${theme.font}`;
    for (const { at, text } of timeTicks(seen.from, seen.from + seen.span, Math.max(2, Math.floor(this.#room / 110)))) {
      const left = Math.round(x(at)) + 0.5;
      context.fillStyle = theme.border;
      context.fillRect(left - 0.5, RULER - 16, 1, height);
      context.fillStyle = theme.faint;
      if (left + 4 + context.measureText(text).width < width) context.fillText(text, left + 4, RULER - 6);
    }
    context.restore();
    context.fillStyle = theme.border;
    context.fillRect(0, RULER - 1, width, 1);
  }

  #row(row: number, { top, height }: Place, shown: Window, marks: Marks): void {
    const context = this.#context;
    const { timeline } = this;
    const { waits } = timeline.lanes[timeline.laneOf[row]];
    const isFaint = (group: number): boolean => marks.found !== null || (marks.only !== null && marks.only !== group);
    drawRow(timeline, row, shown, this.#of, this.#groups, {
      call: (call, left, right) => {
        const group = this.#of[call];
        const faint = isFaint(group);
        if (right - left >= DELAY_ROOM && !faint && !waits) this.#delay(call, left, shown, top + height + 1, this.#pale[group]);
        const [from, to] = [Math.max(left, -4), Math.min(right, shown.width + 4)];
        context.fillStyle = faint ? this.#faint[group] : waits ? this.#pale[group] : this.#strong[group];
        context.fillRect(from, top, Math.max(1, to - from - 0.6), height);
        if (to - Math.max(0, from) > LABEL_ROOM && !faint) this.#label(call, Math.max(0, from), to, top, height, waits ? null : this.#inks[group]);
      },
      block: (group, strength, left, right) => {
        const level = Math.max(0, Math.round(strength * 4) - 1);
        context.fillStyle = isFaint(group) ? this.#faint[group] : waits ? this.#pale[group] : this.#levels[group][level];
        context.fillRect(left, top, right - left, height);
      },
    });
  }

  /** A line from when a call was ready to when it began. */
  #delay(call: number, left: number, { unit }: Window, y: number, colour: string): void {
    const width = Math.min(this.timeline.delay[call] / unit, left + 8);
    if (width < 1.5) return;
    this.#context.fillStyle = colour;
    this.#context.fillRect(left - width, y, width, 2.5);
  }

  #label(call: number, left: number, right: number, top: number, height: number, ink: string | null): void {
    const { timeline } = this;
    const letters = Math.floor((right - left - 9) / LETTER);
    const iteration = timeline.iteration[call];
    const name = this.#labels[timeline.work[call]];
    const whole = iteration > 0 ? `${name} [${iteration.toLocaleString("en-US")}]` : name;
    const text = whole.length <= letters ? whole : letters >= FEWEST_LETTERS || name.length <= letters ? shortened(name, letters) : "";
    if (!text) return;
    const context = this.#context;
    context.fillStyle = ink ?? this.#theme!.ink;
    context.fillText(text, left + 4.5, top + height / 2 + 4);
  }

  /** Calls that stand out, over others that are faint: never narrower than can be seen. */
  #marked(found: Int32Array, { from, unit, width }: Window): void {
    const { timeline } = this;
    const context = this.#context;
    const stride = Math.max(1, Math.floor(found.length / MOST_MARKED));
    for (let i = 0; i < found.length; i += stride) {
      const call = found[i];
      const [left, right] = [(timeline.start[call] - from) / unit, (timeline.stop[call] - from) / unit];
      if (right < 0 || left > width) continue;
      const place = this.#rows[timeline.row[call]];
      const group = this.#of[call];
      const { waits } = timeline.lanes[timeline.laneOf[timeline.row[call]]];
      const [begin, end] = [Math.max(left, -4), Math.min(Math.max(right - 0.6, left + 2), width + 4)];
      context.fillStyle = waits ? this.#pale[group] : this.#strong[group];
      context.fillRect(begin, place.top, end - begin, place.height);
      if (end - Math.max(0, begin) > LABEL_ROOM) this.#label(call, Math.max(0, begin), end, place.top, place.height, waits ? null : this.#inks[group]);
    }
  }

  #arrows({ from, unit, width }: Window, marks: Marks, theme: Theme): void {
    const { sent, received, start, stop, row } = this.timeline;
    const until = from + width * unit;
    const inView: number[] = [];
    for (let i = 0; i < sent.length; i++) {
      if (stop[received[i]] >= from && start[sent[i]] <= until) inView.push(i);
    }
    const isOwn = (i: number): boolean => [sent[i], received[i]].some((call) => call === marks.selected || call === marks.hovered);
    // So many would be a grey cloud: those of what is selected alone.
    const drawn = inView.length <= MOST_ARROWS ? inView : inView.filter(isOwn);
    const context = this.#context;
    for (const i of drawn) {
      const [a, b] = [this.#rows[row[sent[i]]], this.#rows[row[received[i]]]];
      const [x1, x2] = [(stop[sent[i]] - from) / unit, (stop[received[i]] - from) / unit];
      const [y1, y2] = [a.top + a.height / 2, b.top + b.height / 2];
      const bend = Math.max(9, Math.min(60, Math.abs(x2 - x1) / 2));
      const isStrong = isOwn(i);
      context.globalAlpha = isStrong ? 1 : marks.found === null ? ARROW.line : ARROW.faint;
      context.strokeStyle = context.fillStyle = isStrong ? theme.accent : theme.ink;
      context.lineWidth = isStrong ? 2 : 1;
      context.beginPath();
      context.moveTo(x1, y1);
      context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2 - 3, y2);
      context.stroke();
      if (marks.found === null) context.globalAlpha = 1;
      context.beginPath();
      context.moveTo(x2, y2);
      context.lineTo(x2 - 6, y2 - 3.2);
      context.lineTo(x2 - 6, y2 + 3.2);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  /** The border of a call, and since when it was ready. */
  #outline(call: number, { from, unit, width }: Window, colour: string, thickness: number): void {
    const { start, stop, delay, row } = this.timeline;
    const { top, height } = this.#rows[row[call]];
    const [left, right] = [(start[call] - from) / unit, (stop[call] - from) / unit];
    const context = this.#context;
    context.strokeStyle = colour;
    context.lineWidth = thickness;
    const x = Math.max(left, -10);
    context.strokeRect(x, top, Math.max(2, Math.min(right, width + 10) - x), height);
    const ready = Math.max(-10, left - delay[call] / unit);
    if (left - ready < 1.5) return;
    context.beginPath();
    context.moveTo(ready, top + height - 4);
    context.lineTo(ready, top + height + 3);
    context.moveTo(ready, top + height + 2);
    context.lineTo(left, top + height + 2);
    context.stroke();
  }

  #names(theme: Theme): void {
    const context = this.#context;
    const { lanes, end } = this.timeline;
    context.save();
    context.fillStyle = theme.panel;
    context.fillRect(0, RULER, GUTTER, this.#high);
    context.fillStyle = theme.border;
    context.fillRect(GUTTER - 1, 0, 1, this.#high);
    context.beginPath();
    context.rect(0, RULER, this.#wide, this.#high);
    context.clip();
    lanes.forEach(({ device, name, waits, busy }, i) => {
      const top = RULER - this.#top + this.#laneTops[i];
      const isFirst = this.#isFirst(i);
      if (isFirst && i > 0) {
        context.fillStyle = theme.border;
        context.fillRect(0, top, this.#wide, 1);
      }
      const letters = Math.floor((GUTTER - 2 * PAD) / LETTER);
      if (isFirst) {
        context.font = `600 ${SMALL + 1}px ${theme.font}`;
        context.fillStyle = theme.ink;
        context.fillText(shortened(shownText(device), letters - 5), PAD, top + 14);
      }
      context.font = `${SMALL}px ${theme.font}`;
      context.fillStyle = theme.faint;
      context.fillText(shortened(shownText(name), letters), PAD, top + (isFirst ? 27 : 15));
      if (!waits && end > 0) {
        const share = percent(busy / end);
        context.textAlign = "right";
        context.fillText(share, GUTTER - PAD, top + (isFirst ? 14 : 15));
        context.textAlign = "left";
      }
    });
    context.restore();
    context.font = `${SMALL}px ${theme.font}`;
    context.fillStyle = theme.faint;
    context.fillText("busy", GUTTER - PAD - context.measureText("busy").width, RULER - 6);
  }

  /** All of the trace in a strip, and where in it the window is. */
  #overview(seen: TimeWindow, theme: Theme): void {
    const context = this.overview.getContext("2d")!;
    const [width, height] = [this.overview.clientWidth, this.overview.clientHeight];
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { timeline } = this;
    const key = [width, height, ratio, theme.dark, this.#strong.join()].join();
    if (key !== this.#stripKey) {
      this.#stripKey = key;
      this.#strip = this.#drawStrip(width, height, ratio, theme);
    }
    context.drawImage(this.#strip!, 0, 0, width, height);
    const whole = new TimeWindow();
    whole.fit(timeline.end);
    const x = (moment: number): number => ((moment - whole.from) / whole.span) * width;
    const [left, right] = [x(seen.from), x(seen.from + seen.span)];
    context.fillStyle = theme.dark ? "rgb(0 0 0 / 55%)" : "rgb(235 238 242 / 75%)";
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.5;
    const from = Math.max(0.75, Math.min(left, width - 4));
    context.strokeRect(from, 0.75, Math.max(3, Math.min(right, width - 0.75) - from), height - 1.5);
  }

  #strip: HTMLCanvasElement | null = null;
  #stripKey = "";

  #drawStrip(width: number, height: number, ratio: number, theme: Theme): HTMLCanvasElement {
    const strip = document.createElement("canvas");
    strip.width = Math.max(1, Math.round(width * ratio));
    strip.height = Math.max(1, Math.round(height * ratio));
    const context = strip.getContext("2d")!;
    context.scale(ratio, ratio);
    context.fillStyle = theme.panel;
    context.fillRect(0, 0, width, height);
    const { timeline } = this;
    const whole = new TimeWindow();
    whole.fit(timeline.end);
    const shown = { from: whole.from, unit: whole.span / width, width };
    const x = (moment: number): number => (moment - shown.from) / shown.unit;
    context.fillStyle = theme.border;
    for (const { start } of timeline.steps) context.fillRect(x(start), 0, 1, height);
    const rows = timeline.lanes.filter(({ waits }) => !waits).map(({ first }) => first);
    const each = (height - 8) / Math.max(1, rows.length);
    rows.forEach((row, i) => {
      const [top, high] = [4 + i * each, Math.max(1, each - 1)];
      const fill = (colour: string, left: number, right: number): void => {
        context.fillStyle = colour;
        context.fillRect(left, top, Math.max(0.6, right - left), high);
      };
      drawRow(timeline, row, shown, this.#of, this.#groups, {
        call: (call, left, right) => fill(this.#strong[this.#of[call]], left, right),
        block: (group, strength, left, right) => fill(this.#levels[group][Math.max(0, Math.round(strength * 4) - 1)], left, right),
      });
    });
    return strip;
  }

  /** The call at a point, or very near to it. */
  callAt(x: number, y: number, seen: TimeWindow): number | null {
    const row = this.#rowAt(y / this.#scale);
    const across = x / this.#scale - GUTTER;
    if (row === null || across < 0) return null;
    const { timeline } = this;
    const { from, unit } = this.#windowOf(seen);
    const moment = from + across * unit;
    const after = firstAfter(timeline, row, moment - 2 * unit);
    const [begin, end] = [after, Math.min(after + 64, timeline.rowStart[row + 1])];
    let [best, least] = [-1, 3 * unit];
    for (let call = begin; call < end; call++) {
      const away = Math.max(timeline.start[call] - moment, moment - timeline.stop[call], 0);
      if (away < least) [best, least] = [call, away];
      if (timeline.start[call] > moment + 3 * unit) break;
    }
    return best < 0 ? null : best;
  }
}

/** The colour of a group; what stands for all others is grey. */
export function groupColour(timeline: Timeline, colouring: number, group: number, dark: boolean): string {
  const { groups, hasOthers } = timeline.colourings[colouring];
  const isOthers = hasOthers && group === groups.length - 1;
  return isOthers ? (dark ? "#78828f" : "#8a94a3") : runPaint(group, dark).colour;
}

function isBright(colour: string): boolean {
  const [red, green, blue] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 150;
}
