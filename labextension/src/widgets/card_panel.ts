// The card of what is selected.

import { Card, Item } from "../core/card.js";
import { Selection } from "../core/selection.js";
import { shortened } from "../core/words.js";
import { element, icon } from "./dom.js";

export interface CardAction {
  readonly label: string;
  press(): void;
}

const LONGEST = 500;

export interface CardPanel {
  readonly root: HTMLElement;
  /** Show a card, the buttons below its title, and what follows them; null hides it. */
  show(card: Card | null, actions?: CardAction[], panel?: HTMLElement): void;
}

/**
 * @param reveal shows something else.
 * @param close ends the selection.
 * @param leave takes the focus when the card that had it goes.
 */
export function cardPanel(reveal: (goal: Selection) => void, close: () => void, leave: () => void): CardPanel {
  const root = element("section", { class: "fb-card", "aria-label": "selection", "aria-live": "polite", tabindex: "-1", hidden: true });
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    close();
    event.stopPropagation(); // Lab has commands on keys.
  });
  const item = ({ text, detail, goal, code }: Item): HTMLElement => {
    const words = shortened(text, LONGEST);
    const main =
      goal === null
        ? element("span", { class: code ? "fb-code" : "fb-plain" }, words)
        : element("button", { type: "button", title: "Show it", click: () => reveal(goal) }, words);
    return detail
      ? element("li", {}, main, element("span", { class: "fb-detail" }, shortened(detail, LONGEST)))
      : element("li", {}, main);
  };
  const button = ({ label, press }: CardAction): HTMLElement =>
    element("button", { type: "button", click: press }, label);
  const show: CardPanel["show"] = (card, actions = [], panel = undefined) => {
    const pressed = document.activeElement;
    const hasFocus = root.contains(pressed);
    const isSame = root.dataset["title"] === card?.title;
    const place = isSame && pressed ? reachable(root).indexOf(pressed as HTMLElement) : -1;
    root.hidden = card === null;
    if (!card) {
      root.replaceChildren();
      if (hasFocus) leave();
      return;
    }
    const scrolled = isSame ? root.scrollTop : 0;
    root.dataset["title"] = card.title;
    root.replaceChildren(
      element("h3", {}, shortened(card.title, LONGEST)),
      element("p", { class: "fb-type" }, card.subtitle),
      ...(card.warning ? [element("p", { class: "fb-warning" }, card.warning)] : []),
      ...(actions.length > 0 ? [element("div", { class: "fb-actions" }, ...actions.map(button))] : []),
      ...(panel ? [panel] : []),
      ...card.sections.map(({ heading, items }) =>
        element("div", { class: "fb-section" }, element("h4", {}, heading), element("ul", {}, ...items.map(item))),
      ),
      element(
        "button",
        { type: "button", class: "fb-close", "aria-label": "Close", title: "Close", click: close },
        icon("M4 4l8 8M12 4l-8 8"),
      ),
    );
    root.scrollTop = scrolled;
    // Keys go on from what was pressed, or from the top of another card.
    if (hasFocus) (reachable(root)[place] ?? root).focus({ preventScroll: true });
  };
  return { root, show };
}

function reachable(root: HTMLElement): HTMLElement[] {
  return [...root.querySelectorAll<HTMLElement>("button, [tabindex]")];
}
