// Asks a worker for layouts. What is no longer wanted is cancelled, the one that is under way too.

import { Arranging } from "../core/arranging.js";
import { Layout, LayoutRequest } from "../core/layout.js";

import workerText from "worker-text:layout";

const MOST_KEPT = 400;
/** A layout that takes longer is worth stopping when nobody waits for it any more. */
const WORTH_STOPPING = 60;

export class Cancelled extends Error {}

interface Asked {
  readonly id: number;
  readonly key: string;
  readonly request: LayoutRequest;
  readonly resolve: (layout: Layout) => void;
  readonly reject: (error: Error) => void;
}

type Answer = { id: number; layout: Layout } | { id: number; error: string };

export class LayoutClient {
  #worker: Worker | null = null;
  #url = "";
  #module: Promise<{ layOut(request: LayoutRequest): Layout }> | null = null;
  #queue: Asked[] = [];
  #running: Asked | null = null;
  #since = 0;
  #next = 0;
  readonly #known = new Map<string, Layout>();

  /** Start the worker, so that it is there when the first layout is asked for. */
  warm(): void {
    if (this.#worker || this.#module) return;
    this.#url ||= URL.createObjectURL(new Blob([workerText], { type: "text/javascript" }));
    try {
      this.#worker = new Worker(this.#url, { type: "module" });
    } catch {
      this.#withoutWorker();
      return;
    }
    this.#worker.onmessage = (event: MessageEvent<Answer>) => this.#answered(event.data);
    // A page that forbids workers may say so only now.
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#worker?.terminate();
      this.#worker = null;
      this.#withoutWorker();
      if (this.#running) this.#queue.unshift(this.#running);
      this.#running = null;
      this.#pump();
    };
  }

  /**
   * What is made of layouts.
   *
   * @throws Cancelled if something else is to be made before it is there.
   */
  async follow<Made>(steps: Arranging<Made>): Promise<Made> {
    this.cancel();
    let step = steps.next();
    while (!step.done) step = steps.next(await this.#ask(step.value));
    return step.value;
  }

  /** The layout; equal requests are answered from memory. */
  #ask(request: LayoutRequest): Promise<Layout> {
    const key = JSON.stringify(request);
    const known = this.#known.get(key);
    if (known) return Promise.resolve(known);
    return new Promise((resolve, reject) => {
      this.#queue.push({ id: this.#next++, key, request, resolve, reject });
      this.#pump();
    });
  }

  /** Give up everything that was asked for and is not there yet. */
  cancel(): void {
    const given = this.#queue.splice(0);
    if (this.#running) {
      given.push(this.#running);
      this.#running = null;
      if (this.#worker && performance.now() - this.#since > WORTH_STOPPING) {
        this.#worker.terminate();
        this.#worker = null;
      }
    }
    for (const asked of given) asked.reject(new Cancelled());
  }

  close(): void {
    this.cancel();
    this.#worker?.terminate();
    this.#worker = null;
    if (this.#url) URL.revokeObjectURL(this.#url);
    this.#url = "";
  }

  #withoutWorker(): void {
    this.#module ??= import(/* webpackIgnore: true */ this.#url) as Promise<{ layOut(request: LayoutRequest): Layout }>;
  }

  #pump(): void {
    if (this.#running || this.#queue.length === 0) return;
    this.warm();
    const asked = this.#queue.shift()!;
    this.#running = asked;
    this.#since = performance.now();
    if (this.#worker) {
      this.#worker.postMessage({ id: asked.id, request: asked.request });
      return;
    }
    void this.#module!.then(
      ({ layOut }) => this.#answered({ id: asked.id, layout: layOut(asked.request) }),
      (error) => this.#answered({ id: asked.id, error: String(error) }),
    );
  }

  #answered(answer: Answer): void {
    const asked = this.#running;
    if (!asked || asked.id !== answer.id) return; // Cancelled meanwhile.
    this.#running = null;
    if ("layout" in answer) {
      if (this.#known.size >= MOST_KEPT) this.#known.delete(this.#known.keys().next().value!);
      this.#known.set(asked.key, answer.layout);
      asked.resolve(answer.layout);
    } else asked.reject(new Error(answer.error));
    this.#pump();
  }
}
