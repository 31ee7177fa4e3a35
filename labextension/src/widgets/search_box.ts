// The search field and its results: a combobox.

import { Found, Search } from "../core/search.js";
import { counted, shortened, shownText } from "../core/words.js";
import { element } from "./dom.js";

let boxes = 0;

export class SearchBox {
  readonly root: HTMLElement;
  readonly input: HTMLInputElement;
  readonly #list: HTMLElement;
  readonly #id = `fb-found-${++boxes}`;
  #found: Found[] = [];
  #active = -1;

  /**
   * @param search gives the search of what is shown now.
   * @param say what a node is, in a word or two.
   * @param reveal shows a node.
   */
  constructor(
    readonly search: () => Search | null,
    readonly say: (node: number) => string,
    readonly reveal: (node: number) => void,
  ) {
    this.input = element("input", {
      type: "text", // Not "search": Lab's own handling of Escape would clear it.
      placeholder: "Search names and types",
      "aria-label": "Search operations and scopes",
      role: "combobox",
      "aria-expanded": "false",
      "aria-controls": this.#id,
      "aria-autocomplete": "list",
      autocomplete: "off",
      spellcheck: "false",
      input: () => this.#update(),
      keydown: (event) => this.#key(event as KeyboardEvent),
      blur: () => this.#show(false),
      focus: () => this.#update(),
    });
    this.#list = element("ul", { class: "fb-results", role: "listbox", id: this.#id, hidden: true });
    // A press must not take the focus from the field before it becomes a click.
    this.#list.addEventListener("pointerdown", (event) => event.preventDefault());
    this.root = element("div", { class: "fb-search" }, this.input, this.#list);
  }

  #show(on: boolean): void {
    this.#list.hidden = !on;
    this.input.setAttribute("aria-expanded", String(on));
  }

  #update(): void {
    const query = this.input.value.trim();
    const search = this.search();
    if (!query || !search) {
      this.#show(false);
      return;
    }
    const { found, total } = search.find(query);
    this.#found = found;
    this.#active = found.length > 0 ? 0 : -1;
    const rows = found.map(({ node, name }, i) =>
      element(
        "li",
        { role: "option", id: `${this.#id}-${i}`, "aria-selected": String(i === 0), click: () => this.#choose(i) },
        element("span", {}, shortened(shownText(name), 120)),
        element("span", {}, this.say(node)),
      ),
    );
    const rest = total - found.length;
    const note = total === 0 ? "nothing found" : rest > 0 ? `and ${counted(rest, "more")}`.replace(/s$/, "") : "";
    if (note) rows.push(element("li", { class: "fb-note", role: "presentation" }, note));
    this.#list.replaceChildren(...rows);
    this.#mark();
    this.#show(true);
  }

  #mark(): void {
    [...this.#list.children].forEach((row, i) => {
      if (row.getAttribute("role") === "option") row.setAttribute("aria-selected", String(i === this.#active));
    });
    const row = this.#list.children[this.#active];
    this.input.setAttribute("aria-activedescendant", row?.id ?? "");
    row?.scrollIntoView({ block: "nearest" });
  }

  #key(event: KeyboardEvent): void {
    event.stopPropagation(); // Lab has commands on keys.
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (this.#found.length === 0) return;
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.#active = (this.#active + step + this.#found.length) % this.#found.length;
      this.#mark();
    } else if (event.key === "Enter" && this.#active >= 0) this.#choose(this.#active);
    else if (event.key === "Escape") this.#show(false);
    else return;
    event.preventDefault();
  }

  #choose(i: number): void {
    const chosen = this.#found[i];
    this.#show(false);
    if (chosen) this.reveal(chosen.node);
  }
}
