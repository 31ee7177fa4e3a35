// Elements made in one expression. Text is set as text: nothing from a graph is ever read as HTML.

import { piecesOf } from "../core/words.js";

type Attributes = Record<string, string | boolean | ((event: Event) => void)>;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Have an element show a name, which may be long, in lines that end between its parts. */
export function showName(place: HTMLElement, name: string): void {
  place.replaceChildren(...piecesOf(name).flatMap((piece, i) => (i === 0 ? [piece] : [element("wbr"), piece])));
}

/** A drawing of one path in a square of 16. */
export function icon(path: string): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "fb-icon");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

/** Keep from Lab the keys that are pressed in a view: a plain "b" or "d" inserts and deletes cells there. */
export function keepKeys(view: HTMLElement): void {
  view.addEventListener("keydown", (event) => {
    const isLab = event.ctrlKey || event.metaKey || event.altKey || event.key === "Escape" || (event.shiftKey && event.key === "Enter");
    if (!isLab) event.stopPropagation();
  });
}
