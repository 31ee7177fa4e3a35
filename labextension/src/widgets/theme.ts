// The page's colours and fonts: JupyterLab's variables where there are any, the system's otherwise.

export interface Theme {
  readonly dark: boolean;
  readonly paper: string;
  readonly panel: string;
  readonly ink: string;
  readonly faint: string;
  readonly line: string;
  readonly border: string;
  readonly accent: string;
  readonly stale: string;
  readonly font: string;
  /** How large text is, in pixels. */
  readonly size: number;
  /** How large small text is, in whole pixels. */
  readonly small: number;
}

export const SMALL = 11; // How large small text is where a page says nothing.

/** The font of small text, as that of axes, for a canvas. */
export function smallFont({ small, font }: Theme): string {
  return `${small}px ${font}`;
}

/** How many pixels one is of what is measured for the usual small text. */
export function scaleOf({ small }: Theme): number {
  return small / SMALL;
}

export function readTheme(element: HTMLElement): Theme {
  const style = getComputedStyle(element);
  const dark = isDark(style.getPropertyValue("--jp-layout-color0").trim());
  element.dataset["dark"] = String(dark); // What the style sheet has for pages without variables.
  // Variables come as they are written; a canvas wants colours.
  const probe = document.createElement("i");
  probe.hidden = true;
  element.append(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  probe.style.fontSize = `var(--jp-ui-font-size0, ${SMALL}px)`;
  const theme = {
    dark,
    paper: colour("--fb-paper"),
    panel: colour("--fb-panel"),
    ink: colour("--fb-ink"),
    faint: colour("--fb-faint"),
    line: dark ? "#7d8896" : "#98a2af",
    border: colour("--fb-border"),
    accent: colour("--fb-accent"),
    stale: colour("--fb-stale"),
    font: style.fontFamily,
    size: parseFloat(style.fontSize),
    // uPlot takes whole pixels alone.
    small: Math.round(parseFloat(getComputedStyle(probe).fontSize)),
  };
  probe.remove();
  return theme;
}

function isDark(background: string): boolean {
  const attribute = document.body.dataset["jpThemeLight"];
  if (attribute !== undefined) return attribute === "false";
  if (!background) return matchMedia("(prefers-color-scheme: dark)").matches;
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
  probe.fillStyle = background;
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
}

/** Call back when an element's colours may be others: the page's theme changes, or it comes into the page; returns what ends that. */
export function onThemeChange(element: HTMLElement, changed: () => void): () => void {
  const media = matchMedia("(prefers-color-scheme: dark)");
  // Lab swaps its style sheet a moment after it marks the body.
  let timer = 0;
  const soon = (): void => {
    clearTimeout(timer);
    changed();
    timer = window.setTimeout(changed, 250);
  };
  const observer = new MutationObserver(soon);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
  // There Lab sets the sizes of fonts that a person has chosen.
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["style"] });
  media.addEventListener("change", soon);
  // Lab makes views before it puts them into the page, where they have no colours yet.
  let wasPlaced = element.isConnected;
  const placed = new ResizeObserver(() => {
    if (element.isConnected && !wasPlaced) changed();
    wasPlaced = element.isConnected;
  });
  placed.observe(element);
  return () => {
    clearTimeout(timer);
    placed.disconnect();
    observer.disconnect();
    media.removeEventListener("change", soon);
  };
}
