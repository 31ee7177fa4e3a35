// The card of the selected node.

import { Card, Item } from "../core/card.js";
import { shortened } from "../core/words.js";
import { element, icon } from "./dom.js";

export interface CardAction {
  readonly label: string;
  press(): void;
}

const LONGEST = 500;

export function cardPanel(reveal: (node: number) => void, close: () => void): {
  root: HTMLElement;
  show(card: Card | null, actions: CardAction[]): void;
} {
  const root = element("section", { class: "fb-card", "aria-label": "selection", "aria-live": "polite", hidden: true });
  const item = ({ text, detail, node, code }: Item): HTMLElement => {
    const words = shortened(text, LONGEST);
    const main =
      node === null
        ? element("span", { class: code ? "fb-code" : "fb-plain" }, words)
        : element("button", { type: "button", title: "Show it", click: () => reveal(node) }, words);
    return detail
      ? element("li", {}, main, element("span", { class: "fb-detail" }, shortened(detail, LONGEST)))
      : element("li", {}, main);
  };
  const show = (card: Card | null, actions: CardAction[]): void => {
    root.hidden = card === null;
    if (!card) {
      root.replaceChildren();
      return;
    }
    root.replaceChildren(
      element("h3", {}, shortened(card.title, LONGEST)),
      element("p", { class: "fb-type" }, card.subtitle),
      ...(card.warning ? [element("p", { class: "fb-warning" }, card.warning)] : []),
      element(
        "div",
        { class: "fb-actions" },
        ...actions.map(({ label, press }) => element("button", { type: "button", click: press }, label)),
      ),
      ...card.sections.flatMap(({ heading, items }) => [
        element("h4", {}, heading),
        element("ul", {}, ...items.map(item)),
      ]),
      element(
        "button",
        { type: "button", class: "fb-close", "aria-label": "Close", title: "Close", click: close },
        icon("M4 4l8 8M12 4l-8 8"),
      ),
    );
    root.scrollTop = 0;
  };
  return { root, show };
}
