// What all cards of summaries share: what they show, and how it is asked to be shown.

import { XAxis, durationText, momentText, stepText } from "../core/axes.js";
import { RunPaint, runPaint } from "../core/run_colours.js";
import { Run, Series } from "../core/summaries.js";
import { shortened, shownText } from "../core/words.js";
import { element } from "./dom.js";
import { Theme } from "./theme.js";

/** How summaries are shown: the same for all cards of a view. */
export interface Look {
  axis: XAxis;
  smoothing: number;
  log: boolean;
  theme: Theme;
  readonly hidden: Set<number>;
}

/** What a card is given each time it is drawn. */
export interface Shown<Value> {
  /** Those of the card's tags, of runs that are not hidden, by the numbers of the runs. */
  readonly series: readonly Series<Value>[];
  readonly runs: readonly Run[];
  readonly look: Look;
  /** When a run began. */
  startOf(run: number): number;
}

/** The inside of a card. */
export interface Card<Value = unknown> {
  readonly root: HTMLElement;
  /** What is to be seen in a word, beside the title. */
  readonly headline: string;
  draw(shown: Shown<Value>): void;
  /** Fit its place, whose width has changed. */
  resize(): void;
  dispose(): void;
}

/** A text on one line, of bounded length. */
export function lineOf(text: string, longest = 60): string {
  return shortened(shownText(text), longest);
}

/** A run's mark and name. */
export function runName(runs: readonly Run[], run: number, look: Look): HTMLElement {
  return element("span", { class: "fb-run" }, swatch(run, look), element("span", {}, lineOf(runs[run]?.label ?? "")));
}

export function swatch(run: number, look: Look): HTMLElement {
  return swatchOf(runPaint(run, look.theme.dark));
}

export function swatchOf({ colour, dash }: RunPaint): HTMLElement {
  const made = element("i", { class: "fb-swatch", "aria-hidden": "true" });
  made.style.borderTopColor = colour;
  made.style.borderTopStyle = dash.length === 0 ? "solid" : dash[0] > 3 ? "dashed" : "dotted";
  return made;
}

/** Where a point lies, in words: "step 1,200", "3m 20s", or the time of day. */
export function placeText(axis: XAxis, step: number, time: number, start: number): string {
  if (axis === "step") return `step ${step.toLocaleString("en-US")}`;
  return axis === "relative" ? durationText(time - start) : momentText(time);
}

/** The same as the label of a tick. */
export function tickText(axis: XAxis, step: number, time: number, start: number): string {
  if (axis === "step") return stepText(step);
  if (axis === "relative") return durationText(time - start);
  return new Date(time * 1000).toLocaleTimeString([], { timeStyle: "short" });
}
