// A session's queues in a page: whether a training waits for its input, and below a row for each queue.

import { inflate } from "../core/packing.js";
import { Pipeline, readPipeline } from "../core/pipeline.js";
import { counted, shownText } from "../core/words.js";
import { element, keepKeys } from "./dom.js";
import { PIPELINE_STYLES } from "./pipeline_styles.js";
import { QueueRow } from "./queue_row.js";
import { onThemeChange, readTheme } from "./theme.js";

const TICK = 1000; // Milliseconds.

export class PipelineView {
  readonly root = element("div", { class: "fb-pipeline", role: "group", "aria-label": "input pipeline" });
  readonly #mark = element("i", { class: "fb-mark", "aria-hidden": "true" });
  readonly #text = element("h3", {});
  readonly #detail = element("p", { class: "fb-faint" });
  readonly #said = element("div", { class: "fb-said", role: "status", hidden: true });
  readonly #told = element("span", { class: "fb-hidden", role: "status" });
  readonly #body = element("div", { class: "fb-body" });
  readonly #more = element("div", { class: "fb-more", hidden: true });
  /** By the operations of their queues. */
  readonly #rows = new Map<string, QueueRow>();
  readonly #ends: (() => void)[] = [];
  #taken: Promise<void> = Promise.resolve();
  #pipeline: Pipeline | null = null;
  #frame = 0;

  /**
   * @param place where it goes.
   * @param isLive whether time goes on: what waits there still waits.
   */
  constructor(place: HTMLElement, isLive: boolean) {
    this.root.append(
      element("style", {}, PIPELINE_STYLES),
      element("header", { class: "fb-verdict" }, this.#mark, element("div", {}, this.#text, this.#detail)),
      this.#told,
      this.#said,
      this.#body,
      this.#more,
    );
    keepKeys(this.root);
    place.append(this.root);
    const sized = new ResizeObserver(() => {
      for (const row of this.#rows.values()) row.resize();
    });
    sized.observe(this.#body);
    this.#ends.push(
      () => sized.disconnect(),
      onThemeChange(this.root, () => this.#redraw()),
    );
    if (isLive) {
      const timer = window.setInterval(() => this.#tick(), TICK);
      this.#ends.push(() => clearInterval(timer));
    }
  }

  /** Show what there is, after what came before. */
  take(packed: Uint8Array<ArrayBuffer>): Promise<void> {
    this.#taken = this.#taken.then(async () => {
      this.#pipeline = readPipeline(await inflate(packed));
      this.#redraw();
    });
    return this.#taken;
  }

  dispose(): void {
    cancelAnimationFrame(this.#frame);
    for (const end of this.#ends) end();
    for (const row of this.#rows.values()) row.dispose();
    this.#rows.clear();
    this.root.remove();
  }

  #tick(): void {
    if (this.#pipeline?.said) return; // The session has ended.
    for (const row of this.#rows.values()) row.tick();
  }

  #redraw(): void {
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    this.#frame = 0;
    const pipeline = this.#pipeline;
    if (!pipeline) return;
    const { verdict, queues } = pipeline;
    const theme = readTheme(this.root);
    // Told again only when it becomes another: a screen reader would never fall silent.
    if (this.root.dataset["state"] !== verdict.state) this.#told.textContent = shownText(verdict.text);
    this.root.dataset["state"] = verdict.state;
    this.root.dataset["ended"] = String(pipeline.said !== "");
    this.#text.textContent = shownText(verdict.text);
    this.#detail.textContent = shownText(verdict.detail);
    this.#detail.hidden = verdict.detail === "";
    this.#said.textContent = shownText(pipeline.said);
    this.#said.hidden = pipeline.said === "";
    this.#more.textContent = `and ${counted(pipeline.more, "more queue")}`;
    this.#more.hidden = pipeline.more === 0;
    this.#arrange(queues.map(({ operation }) => operation));
    for (const queue of queues) this.#rows.get(queue.operation)!.draw(queue, pipeline, theme);
    this.root.dataset["drawn"] = String(performance.timeOrigin + performance.now());
  }

  /** Have a row for each queue, in their order. */
  #arrange(operations: readonly string[]): void {
    const wanted = new Set(operations);
    for (const [operation, row] of this.#rows) {
      if (wanted.has(operation)) continue;
      row.dispose();
      this.#rows.delete(operation);
    }
    let before: Element | null = null;
    for (const operation of operations) {
      let row = this.#rows.get(operation);
      if (!row) this.#rows.set(operation, (row = new QueueRow()));
      const next: Element | null = before ? before.nextElementSibling : this.#body.firstElementChild;
      if (next !== row.root) this.#body.insertBefore(row.root, next);
      before = row.root;
    }
    this.#body.hidden = operations.length === 0;
  }
}
