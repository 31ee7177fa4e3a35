// What a notebook's loader, or an exported page, calls.

import { GraphView } from "./graph_view.js";
import { Kernel, KernelLink } from "./kernel_link.js";
import { PipelineView } from "./pipeline_view.js";
import { PlacementView } from "./placement_view.js";
import { Options, SummariesView } from "./summaries_view.js";
import { TimelineView } from "./timeline_view.js";

const SILENCE = 1500; // Milliseconds.

/** What is said of loops and branches, by their names. */
type Ran = Readonly<Record<string, string>>;

interface Model {
  /** JupyterLab's, of which the kernel is used; others have none. */
  readonly widget_manager?: { readonly kernel?: Kernel | null };
  get(name: string): unknown;
  on(event: string, call: (...told: never[]) => void): void;
  off(event: string, call: (...told: never[]) => void): void;
  send(content: unknown): void;
}

/** Render a widget's model of a graph into an element; returns what ends that. */
export function renderGraph(model: Model, place: HTMLElement): () => void {
  const kernel = (): Kernel | null => model.widget_manager?.kernel ?? null;
  const link = new KernelLink(kernel, String(model.get("view")));
  const view = new GraphView(place, link, "graph", String(model.get("graph_name")));
  const begun = held(model.get("begun"));
  let isLive = begun === null;
  const load = (): void => {
    const payload = held(model.get("payload"));
    if (!payload) return;
    if (begun && !isSame(begun, payload)) {
      view.offerLive((on) => {
        isLive = on;
        load();
      });
    }
    void view.load(isLive || !begun ? payload : begun);
  };
  const say = (): void => view.say(String(model.get("said")));
  const tell = (): void => void view.tell(model.get("ran") as Ran);
  model.on("change:payload", load);
  model.on("change:said", say);
  model.on("change:ran", tell);
  load();
  say();
  tell();
  return () => {
    model.off("change:payload", load);
    model.off("change:said", say);
    model.off("change:ran", tell);
    view.dispose();
    link.close();
  };
}

/** Render a graph given as base64 into an element of a page without a kernel. */
export async function renderExported(encoded: string, place: HTMLElement, { ran }: { ran: Ran }): Promise<void> {
  const view = new GraphView(place);
  await view.tell(ran);
  await view.load(decoded(encoded));
}

/** Render a widget's model of plans into an element; returns what ends that. */
export function renderPlacement(model: Model, place: HTMLElement): () => void {
  const view = new PlacementView(place, String(model.get("graph_name")));
  void view.load(bytesOf(model.get("payload") as DataView));
  return () => view.dispose();
}

/** Render plans given as base64 into an element of a page without a kernel. */
export async function renderExportedPlacement(encoded: string, place: HTMLElement): Promise<void> {
  await new PlacementView(place).load(decoded(encoded));
}

/** Render a widget's model of summaries into an element; returns what ends that. */
export function renderSummaries(model: Model, place: HTMLElement): () => void {
  // The kernel may be busy: it mends a gap by itself then, and is asked for when it is not.
  const say = (): void => model.send({ sequence: view.sequence });
  const view = new SummariesView(place, model.get("options") as Options, say);
  const hear = (_: unknown, buffers: DataView[]): void => {
    clearTimeout(silence);
    for (const buffer of buffers) void view.take(bytesOf(buffer));
  };
  model.on("msg:custom", hear);
  void view.take(bytesOf(model.get("payload") as DataView));
  // Where frames come, they tell whether one was lost; where none comes, the last may have been.
  const silence = setTimeout(say, SILENCE);
  return () => {
    clearTimeout(silence);
    model.off("msg:custom", hear);
    view.dispose();
  };
}

/** Render summaries given as base64 into an element of a page without a kernel. */
export async function renderExportedSummaries(encoded: string, place: HTMLElement, options: Options): Promise<void> {
  await new SummariesView(place, options).take(decoded(encoded));
}

/** Render a widget's model of a session's queues into an element; returns what ends that. */
export function renderPipeline(model: Model, place: HTMLElement): () => void {
  const view = new PipelineView(place, true);
  const hear = (_: unknown, buffers: DataView[]): void => {
    for (const buffer of buffers) void view.take(bytesOf(buffer));
  };
  model.on("msg:custom", hear);
  void view.take(bytesOf(model.get("payload") as DataView));
  return () => {
    model.off("msg:custom", hear);
    view.dispose();
  };
}

/** Render queues given as base64 into an element of a page without a kernel. */
export async function renderExportedPipeline(encoded: string, place: HTMLElement): Promise<void> {
  await new PipelineView(place, false).take(decoded(encoded));
}

/** Render a widget's model of a trace into an element; returns what ends that. */
export function renderTimeline(model: Model, place: HTMLElement): () => void {
  const view = new TimelineView(place, String(model.get("graph_name")));
  void view.load(bytesOf(model.get("payload") as DataView));
  return () => view.dispose();
}

/** Render a trace given as base64 into an element of a page without a kernel. */
export async function renderExportedTimeline(encoded: string, place: HTMLElement): Promise<void> {
  await new TimelineView(place).load(decoded(encoded));
}

/** What a page carries as base64. */
function decoded(encoded: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
}

/** The bytes of a trait; null where there are none. */
function held(trait: unknown): Uint8Array<ArrayBuffer> | null {
  return trait instanceof DataView && trait.byteLength > 0 ? bytesOf(trait) : null;
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}

function bytesOf(view: DataView): Uint8Array<ArrayBuffer> {
  return new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength);
}
