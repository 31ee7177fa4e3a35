// What is said of a call: beside the pointer in short, and below the lanes all there is.

import { Timeline } from "../core/timeline.js";
import { beside, byteSize, counted, shortened, shownText, timeSize } from "../core/words.js";
import { element, icon } from "./dom.js";

/** What a call took, and how it can be said in a line. */
export function sayCall(timeline: Timeline, call: number): string {
  const { operation, type, variable } = timeline.works[timeline.work[call]];
  const { device, name } = timeline.lanes[timeline.laneOf[timeline.row[call]]];
  const parts = [
    `${shownText(beside(variable, operation))}, ${type}`,
    stepOf(timeline, call),
    `${device}, ${name}`,
    `${took(timeline, call)}, ready ${delayText(timeline.delay[call])} before`,
  ];
  return parts.join(", ");
}

/** The lines of a tip. */
export function tipOf(timeline: Timeline, call: number): HTMLElement {
  const { operation, type, site, variable } = timeline.works[timeline.work[call]];
  const row = (what: string, value: string): HTMLElement =>
    element("tr", {}, element("td", { class: "fb-faint" }, what), element("td", { class: "fb-number" }, value));
  const rows = [
    row(timeline.lanes[timeline.laneOf[timeline.row[call]]].waits ? "under way" : "runs", took(timeline, call)),
    row("ready before", delayText(timeline.delay[call])),
    row("gives", byteSize(timeline.bytes[call])),
  ];
  return element(
    "div",
    {},
    element("strong", {}, shortened(shownText(beside(variable, operation)), 60)),
    element("div", { class: "fb-faint" }, `${type} · ${stepOf(timeline, call)}${site ? ` · ${shownText(site)}` : ""}`),
    element("table", {}, element("tbody", {}, ...rows)),
  );
}

function took(timeline: Timeline, call: number): string {
  return timeSize((timeline.stop[call] - timeline.start[call]) / 1e9);
}

function delayText(nanoseconds: number): string {
  return nanoseconds > 0 ? timeSize(nanoseconds / 1e9) : "0 ns";
}

function stepOf(timeline: Timeline, call: number): string {
  const iteration = timeline.iteration[call];
  const step = `step ${timeline.step[call].toLocaleString("en-US")}`;
  return iteration > 0 ? `${step}, iteration ${iteration.toLocaleString("en-US")}` : step;
}

export interface CallActions {
  zoom(): void;
  /** To the call of the same operation that is before or after. */
  another(forward: boolean): void;
}

/** All that is known of the call that is selected. */
export class CallPanel {
  readonly root = element("section", { class: "fb-call", "aria-label": "selected call" });

  constructor(readonly actions: CallActions) {}

  show(timeline: Timeline, call: number | null): void {
    this.root.replaceChildren(...(call === null ? [hint()] : this.#said(timeline, call)));
  }

  #said(timeline: Timeline, call: number): HTMLElement[] {
    const { operation, type, site, others, variable } = timeline.works[timeline.work[call]];
    const { device, name, waits } = timeline.lanes[timeline.laneOf[timeline.row[call]]];
    const [start, stop, delay] = [timeline.start[call], timeline.stop[call], timeline.delay[call]];
    const begun = timeline.steps[timeline.step[call]].start;
    const moment = (at: number): string => `+${Math.round(at - begun).toLocaleString("en-US")} ns`;
    const button = (label: string, path: string, press: () => void, text = ""): HTMLElement =>
      element("button", { type: "button", title: label, "aria-label": label, click: press }, icon(path), ...(text ? [element("span", {}, text)] : []));
    const fact = (what: string, value: string, broad = false): HTMLElement =>
      element("div", broad ? { class: "fb-broad" } : {}, element("dt", {}, what), element("dd", {}, value));
    const facts = [
      fact(waits ? "under way for" : "runs for", `${timeSize((stop - start) / 1e9)}`),
      fact("queued for", delayText(delay)),
      fact("ready at", moment(start - delay)),
      fact("begins at", moment(start)),
      fact("ends at", moment(stop)),
      fact("gives", byteSize(timeline.bytes[call])),
      fact("memory in use then", byteSize(timeline.live[call])),
      fact("on", `${shownText(device)}, ${shownText(name)}`),
    ];
    const partner = partnerOf(timeline, call);
    if (partner) facts.push(fact(...partner));
    if (site) facts.push(fact("defined at", shownText(site), true));
    if (others.length > 0) facts.push(fact("stands also for", others.map(shownText).join(", "), true));
    return [
      element(
        "header",
        {},
        element("h4", {}, shownText(beside(variable, operation)), " ", element("span", {}, `${type} · ${stepOf(timeline, call)}, times from its begin`)),
        element(
          "div",
          { class: "fb-group" },
          button("The call of this operation before", "M10 3L5 8l5 5", () => this.actions.another(false)),
          button("The next call of this operation", "M6 3l5 5-5 5", () => this.actions.another(true)),
          button("Zoom to this call", "M7 3a4 4 0 1 1 0 8a4 4 0 1 1 0-8M10 10l4 4", () => this.actions.zoom(), "Zoom"),
        ),
      ),
      element("dl", {}, ...facts),
    ];
  }
}

/** Where what a call sends goes, or comes from. */
function partnerOf(timeline: Timeline, call: number): [string, string] | null {
  const sent = timeline.sent.indexOf(call);
  const received = timeline.received.indexOf(call);
  const there = sent >= 0 ? timeline.received[sent] : received >= 0 ? timeline.sent[received] : null;
  if (there === null) return null;
  const { device } = timeline.lanes[timeline.laneOf[timeline.row[there]]];
  return [sent >= 0 ? "sends to" : "receives from", shownText(device)];
}

function hint(): HTMLElement {
  const key = (name: string): HTMLElement => element("kbd", {}, name);
  return element(
    "p",
    { class: "fb-hint" },
    "Select a call to see when it was ready and ran, what it gave, and where it was defined. Keys: ",
    key("←"), " ", key("→"), " calls of a lane, ", key("↑"), " ", key("↓"), " lanes, ", key("+"), " ", key("−"), " zoom, ",
    key("Shift ←"), " ", key("Shift →"), " move, ", key("Page ↑"), " ", key("Page ↓"), " steps, ", key("f"), " all, ", key("Enter"), " zoom to the call, ",
    key("/"), " search. A double click zooms to a call.",
  );
}

/** What is found by a search, or selected in another view. */
export function sayFound(timeline: Timeline, found: Int32Array): string {
  if (found.length === 0) return "nothing found";
  let busy = 0;
  for (const call of found) if (!timeline.lanes[timeline.laneOf[timeline.row[call]]].waits) busy += timeline.stop[call] - timeline.start[call];
  return `${counted(found.length, "call")}, busy ${timeSize(busy / 1e9)}`;
}
