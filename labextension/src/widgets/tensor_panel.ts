// What can be done with the selected tensor: code to copy, and its value where there is a kernel.

import { fetchCode, feedCode } from "../core/run_code.js";
import { Hierarchy } from "../core/hierarchy.js";
import { element } from "./dom.js";
import { Fetcher } from "./kernel_link.js";
import { valueView } from "./value_view.js";

export class TensorPanel {
  readonly root = element("div", { class: "fb-tensor" });
  #shown: string | null = null;
  #asking: AbortController | null = null;

  constructor(readonly fetcher: Fetcher | null) {}

  /** Show a tensor of a tree; a value that was fetched stays while the tensor does. */
  show(tree: Hierarchy, tensor: number): void {
    const name = tree.tensorName(tensor);
    if (this.#shown === name) return;
    this.clear();
    this.#shown = name;
    const feed = feedCode(tree, tensor);
    this.root.replaceChildren(
      ...(this.fetcher ? [this.#fetching(this.fetcher, name)] : []),
      ...snippet("fetch it", fetchCode(tree, tensor)),
      ...(feed ? snippet("feed it", feed) : []),
    );
  }

  clear(): void {
    this.#asking?.abort();
    this.#asking = null;
    this.#shown = null;
    this.root.replaceChildren();
  }

  #fetching(fetcher: Fetcher, name: string): HTMLElement {
    const found = element("div", { class: "fb-found", "aria-live": "polite" });
    const button = element("button", { type: "button", class: "fb-main" }, "Fetch its value");
    const ask = async (): Promise<void> => {
      const asking = new AbortController();
      this.#asking = asking;
      const say = (words: string): void => found.replaceChildren(element("p", { class: "fb-detail" }, words));
      button.textContent = "Cancel";
      say("Waiting for the kernel…");
      try {
        const answer = await fetcher.fetch(name, () => say("Fetching…"), asking.signal);
        found.replaceChildren(valueView(answer));
      } catch (error) {
        if (asking.signal.aborted) say("Cancelled.");
        else found.replaceChildren(element("pre", { class: "fb-warning" }, error instanceof Error ? error.message : String(error)));
      } finally {
        if (this.#asking === asking) this.#asking = null;
        button.textContent = "Fetch its value";
      }
    };
    button.addEventListener("click", () => {
      if (this.#asking) this.#asking.abort();
      else void ask();
    });
    return element("div", {}, button, found);
  }
}

function snippet(heading: string, code: string): HTMLElement[] {
  const text = element("pre", { class: "fb-snippet", tabindex: "0" }, code);
  const copy = element("button", { type: "button", class: "fb-copy" }, "Copy");
  copy.addEventListener("click", () => {
    const said = (word: string): void => {
      copy.textContent = word;
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    };
    // Where a page may not write to the clipboard, the code is selected: a key copies it.
    const select = (): void => {
      getSelection()?.selectAllChildren(text);
      said("Selected");
    };
    if (navigator.clipboard) void navigator.clipboard.writeText(code).then(() => said("Copied"), select);
    else select();
  });
  return [element("h4", {}, heading, copy), text];
}
