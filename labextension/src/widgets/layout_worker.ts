// Lays scopes out, in a worker; or, where a page allows none, as a module of the page.

import { Layout, LayoutRequest } from "../core/layout.js";
import { layOut } from "../core/placing.js";

export { layOut };

declare const WorkerGlobalScope: (new () => object) | undefined;

if (typeof WorkerGlobalScope !== "undefined" && self instanceof WorkerGlobalScope) {
  self.onmessage = (event: MessageEvent<{ id: number; request: LayoutRequest }>) => {
    const { id, request } = event.data;
    let answer: { id: number; layout: Layout } | { id: number; error: string };
    try {
      answer = { id, layout: layOut(request) };
    } catch (error) {
      answer = { id, error: String(error) };
    }
    (self as unknown as { postMessage(message: unknown): void }).postMessage(answer);
  };
}
