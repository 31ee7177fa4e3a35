// One queue in a view of a session's queues: what it is, how full, what goes through, who waits.

import { durationText, numberText } from "../core/axes.js";
import { Pipeline, Queue, kindText, sidesOf } from "../core/pipeline.js";
import { runPaint } from "../core/run_colours.js";
import { counted, percent } from "../core/words.js";
import { element, showName } from "./dom.js";
import { lineOf } from "./summary_card.js";
import { Theme } from "./theme.js";
import { TimeChart } from "./time_chart.js";

const [FILLING, TAKING] = [0, 1]; // Colours, by their numbers.

export class QueueRow {
  readonly root: HTMLElement;
  readonly #name = element("h4", {});
  readonly #operation = element("div", { class: "fb-faint fb-line" });
  readonly #place = element("div", { class: "fb-faint fb-line" });
  readonly #runners = element("ul", { class: "fb-runners" });
  readonly #filled = element("span", { class: "fb-value" });
  readonly #fill = new TimeChart();
  readonly #rates = element("span", { class: "fb-value" });
  readonly #rate = new TimeChart();
  readonly #taking = new Share();
  readonly #filling = new Share();
  readonly #waits = element("ul", { class: "fb-waits" });
  #waiting: readonly { readonly seconds: number; readonly place: HTMLElement }[] = [];
  #seen = 0;

  constructor() {
    const head = (what: string, value: HTMLElement): HTMLElement => element("header", {}, element("span", { class: "fb-faint" }, what), value);
    this.root = element(
      "article",
      { class: "fb-queue" },
      element("div", { class: "fb-about" }, this.#name, this.#operation, this.#place, this.#runners),
      element("div", { class: "fb-chart" }, head("fill", this.#filled), this.#fill.root),
      element("div", { class: "fb-chart" }, head("a second", this.#rates), this.#rate.root),
      element("div", { class: "fb-shares" }, element("span", { class: "fb-faint" }, "part of the time"), this.#taking.root, this.#filling.root),
      this.#waits,
      element("div", { class: "fb-unused fb-faint" }, "no run has asked it for an element"),
    );
  }

  draw(queue: Queue, { times, said }: Pipeline, theme: Theme): void {
    const [filling, taking] = [FILLING, TAKING].map((colour) => runPaint(colour, theme.dark).colour);
    const name = lineOf(queue.name, 80);
    const hasEnded = said !== "";
    this.root.setAttribute("aria-label", `queue ${name}`);
    const isUsed = queue.seconds > 0 || queue.put > 0 || queue.waiting.length > 0;
    this.root.classList.toggle("fb-isUnused", !isUsed);
    showName(this.#name, name);
    showName(this.#operation, queue.operation === queue.name ? kindText(queue.kind) : lineOf(queue.operation, 80));
    this.#operation.title = `${lineOf(queue.operation, 300)}, ${kindText(queue.kind)}`;
    this.#place.textContent = this.#place.title = lineOf(queue.place, 120);
    this.#showRunners(queue);
    if (!isUsed) return;

    const room = queue.capacity >= 0 ? ` of ${queue.capacity.toLocaleString("en-US")}` : "";
    const fill = `${queue.fill.toLocaleString("en-US")}${room}${queue.isClosed ? ", closed" : ""}`;
    this.#filled.textContent = fill;
    const most = queue.capacity > 0 ? queue.capacity : Math.max(1, ...queue.fills);
    const line = { label: "elements", colour: filling, filled: 0.16, values: queue.fills };
    this.#fill.draw(`fill of queue ${name}: ${fill}`, times, [line], most, theme, hasEnded, halves(most));

    const [put, taken] = [queue.putRate, queue.takenRate].map((rate) => numberText(rate, 3));
    const coloured = (text: string, colour: string): HTMLElement => {
      const made = element("span", {}, text);
      made.style.color = colour;
      return made;
    };
    this.#rates.replaceChildren(coloured(`in ${put}`, filling), coloured(`out ${taken}`, taking));
    const lines = [
      { label: "in", colour: filling, filled: 0, values: queue.putRates },
      { label: "out", colour: taking, filled: 0, values: queue.takenRates },
    ];
    const fastest = Math.max(0, ...queue.putRates, ...queue.takenRates) * 1.06 || 1;
    this.#rate.draw(`elements of queue ${name} a second: in ${put}, out ${taken}`, times, lines, fastest, theme, hasEnded);

    const sides = sidesOf(queue);
    this.#taking.draw(sides.taking, queue.elementShare, taking);
    this.#filling.draw(sides.filling, queue.roomShare, filling);
    this.#showWaiting(queue);
  }

  /** Say how long what waits has been waiting by now. */
  tick(): void {
    const since = (performance.now() - this.#seen) / 1000;
    for (const { seconds, place } of this.#waiting) place.textContent = durationText(seconds + since);
  }

  resize(): void {
    this.#fill.resize();
    this.#rate.resize();
  }

  dispose(): void {
    this.#fill.dispose();
    this.#rate.dispose();
    this.root.remove();
  }

  #showRunners({ runners }: Queue): void {
    const items = runners.map(({ name, state, text }) => {
      const label = text.startsWith(state) || state === "runs" ? text : `${state}: ${text}`;
      return element("li", { class: `fb-runner fb-is-${state.replace(" ", "-")}`, title: lineOf(name, 200) }, element("i", { "aria-hidden": "true" }), `runner ${lineOf(label, 300)}`);
    });
    this.#runners.replaceChildren(...(items.length > 0 ? items : [element("li", { class: "fb-runner" }, element("i", { "aria-hidden": "true" }), "no runner")]));
  }

  #showWaiting({ waiting, moreWaiting }: Queue): void {
    this.#seen = performance.now();
    const shown = waiting.map(({ seconds }) => ({ seconds, place: element("span", { class: "fb-value" }, durationText(seconds)) }));
    if (waiting.length === 0) {
      // The line stays, so that nothing moves where waits are short.
      this.#waiting = [];
      return this.#waits.replaceChildren(element("li", { class: "fb-faint" }, "nobody waits now"));
    }
    const items = waiting.map(({ text, wish, isRunners }, i) =>
      element("li", { class: isRunners ? "fb-faint" : "fb-waitsNow", title: lineOf(wish, 300) }, element("span", {}, `now ${lineOf(text, 240)}, for `), shown[i].place),
    );
    const more = moreWaiting > 0 ? [element("li", { class: "fb-faint" }, `and ${counted(moreWaiting, "other")}`)] : [];
    this.#waits.replaceChildren(...items, ...more);
    this.#waiting = shown;
  }
}

/** The numbers of an axis that ends with a queue's capacity. */
function halves(most: number): number[] {
  return most % 2 === 0 ? [0, most / 2, most] : [0, most];
}

/** For which part of the time somebody waited, as a bar. */
class Share {
  readonly root: HTMLElement;
  readonly #who = element("span", {});
  readonly #value = element("span", { class: "fb-value" });
  readonly #bar = element("i", {});
  readonly #meter = element("div", { class: "fb-meter", role: "meter", "aria-valuemin": "0", "aria-valuemax": "100" }, this.#bar);

  constructor() {
    this.root = element("div", { class: "fb-share" }, this.#who, this.#value, this.#meter);
  }

  draw(who: string, share: number, colour: string): void {
    this.#who.textContent = who;
    this.#value.textContent = percent(share);
    this.#bar.style.width = share > 0 ? `max(4px, ${100 * share}%)` : "0";
    this.#bar.style.background = colour;
    this.#meter.setAttribute("aria-label", who);
    this.#meter.setAttribute("aria-valuenow", String(Math.round(100 * share)));
    this.#meter.setAttribute("aria-valuetext", percent(share));
  }
}
