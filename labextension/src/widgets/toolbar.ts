// The buttons over the picture.

import { element, icon } from "./dom.js";

export interface Actions {
  fit(): void;
  zoom(by: number): void;
  collapseAll(): void;
  setControls(on: boolean): void;
  setSideways(on: boolean): void;
  setSeries(on: boolean): void;
  setRouting(on: boolean): void;
  setLive(on: boolean): void;
  exportSvg(): void;
}

export interface Toolbar {
  readonly root: HTMLElement;
  /** The button for what graphs without loops and branches have not. */
  readonly routing: HTMLElement;
  readonly sideways: HTMLElement;
  /** The button for a graph that has grown since its cell ran; hidden until then. */
  readonly live: HTMLElement;
}

export function toolbar(actions: Actions, search: HTMLElement): Toolbar {
  const button = (label: string, path: string, press: () => void, text = ""): HTMLButtonElement =>
    element("button", { type: "button", title: label, "aria-label": label, click: press }, icon(path), ...(text ? [element("span", {}, text)] : []));
  const toggle = (label: string, path: string, set: (on: boolean) => void, text: string): HTMLButtonElement => {
    const made = button(label, path, () => {
      const on = made.getAttribute("aria-pressed") !== "true";
      made.setAttribute("aria-pressed", String(on));
      set(on);
    }, text);
    made.setAttribute("aria-pressed", "false");
    return made;
  };
  const routing = toggle(
    "Show what only routes values: Switch, Merge, Enter, Exit", "M2 8h4l5-5h3M6 8l5 5h3", (on) => actions.setRouting(on), "Routing",
  );
  const sideways = toggle("Let edges run to the right", "M2 8h11M9 4l4 4-4 4", (on) => actions.setSideways(on), "Sideways");
  const live = toggle(
    "Show the graph as it is now, and not as of this cell", "M8 6.5a1.5 1.5 0 1 1 0 3a1.5 1.5 0 1 1 0-3M4.5 4.5a5 5 0 0 0 0 7M11.5 4.5a5 5 0 0 1 0 7", (on) => actions.setLive(on), "Live",
  );
  live.hidden = true;
  const root = element(
    "div",
    { class: "fb-bar", role: "toolbar", "aria-label": "graph" },
    search,
    element(
      "div",
      { class: "fb-group" },
      button("Zoom out", "M3 8h10", () => actions.zoom(1 / 1.35)),
      button("Zoom in", "M3 8h10M8 3v10", () => actions.zoom(1.35)),
      button("Fit all into view", "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4", () => actions.fit(), "Fit"),
      button("Collapse all scopes", "M4 3l4 4 4-4M4 13l4-4 4 4", () => actions.collapseAll(), "Collapse all"),
    ),
    element(
      "div",
      { class: "fb-group" },
      toggle("Show control edges", "M3 3v6a3 3 0 0 0 3 3h7M10 9l3 3-3 3", (on) => actions.setControls(on), "Control"),
      routing,
      toggle("Group members that are alike and numbered", "M2 5h9v9H2zM5 5V2h9v9h-3", (on) => actions.setSeries(on), "Series"),
      sideways,
      live,
      button("Save the picture as SVG", "M8 2v8M4.5 7L8 10.5 11.5 7M2.5 13.5h11", () => actions.exportSvg(), "SVG"),
    ),
  );
  return { root, routing, sideways, live };
}
