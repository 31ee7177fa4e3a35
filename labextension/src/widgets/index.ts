// What a notebook's loader, or an exported page, calls.

import { GraphView } from "./graph_view.js";
import { Kernel, KernelLink } from "./kernel_link.js";

interface Model {
  /** JupyterLab's, of which the kernel is used; others have none. */
  readonly widget_manager?: { readonly kernel?: Kernel | null };
  get(name: string): unknown;
  on(event: string, call: () => void): void;
  off(event: string, call: () => void): void;
}

/** Render a widget's model into an element; returns what ends that. */
export function renderGraph(model: Model, place: HTMLElement): () => void {
  const kernel = (): Kernel | null => model.widget_manager?.kernel ?? null;
  const view = new GraphView(place, new KernelLink(kernel, String(model.get("view"))));
  const load = (): void => {
    const payload = model.get("payload");
    if (payload instanceof DataView && payload.byteLength > 0) void view.load(bytesOf(payload));
  };
  model.on("change:payload", load);
  load();
  return () => {
    model.off("change:payload", load);
    view.dispose();
  };
}

/** Render a graph given as base64 into an element of a page without a kernel. */
export async function renderExported(encoded: string, place: HTMLElement): Promise<void> {
  const bytes = Uint8Array.from(atob(encoded), (letter) => letter.charCodeAt(0));
  await new GraphView(place).load(bytes);
}

function bytesOf(view: DataView): Uint8Array<ArrayBuffer> {
  return new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength);
}
