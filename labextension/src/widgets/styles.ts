// The style of everything around the picture. Colours are JupyterLab's, with others for other pages. Rules are nested
// in the view that they are for: two kinds of views stand on one page, and share names.

/** The colours of every kind of view. */
export const COLOURS = `
.fb-graph, .fb-summaries, .fb-pipeline, .fb-timeline {
  --fb-paper: var(--jp-layout-color0, light-dark(#ffffff, #15181d));
  --fb-panel: var(--jp-layout-color1, light-dark(#ffffff, #1c2027));
  --fb-hover: var(--jp-layout-color2, light-dark(#eef0f3, #2a3039));
  --fb-ink: var(--jp-ui-font-color0, light-dark(#1c2430, #e6e9ee));
  --fb-faint: var(--jp-ui-font-color2, light-dark(#5d6878, #9aa5b4));
  --fb-border: var(--jp-border-color2, light-dark(#dbe0e6, #363d48));
  --fb-accent: var(--jp-brand-color1, light-dark(#1f6feb, #58a6ff));
  --fb-stale: light-dark(#c2410c, #fb923c);
  color-scheme: light dark;
}
:is(.fb-graph, .fb-summaries, .fb-pipeline, .fb-timeline)[data-dark="true"] { color-scheme: dark; --fb-stale: #fb923c; }
:is(.fb-graph, .fb-summaries, .fb-pipeline, .fb-timeline)[data-dark="false"] { color-scheme: light; --fb-stale: #c2410c; }
`;

export const STYLES = `${COLOURS}
.fb-graph {
  position: relative; overflow: hidden; box-sizing: border-box; height: 440px; min-height: 180px;
  border: 1px solid var(--fb-border); border-radius: 8px; background: var(--fb-paper); color: var(--fb-ink);
  font: var(--jp-ui-font-size1, 12px)/1.45 var(--jp-ui-font-family, system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif);
  container-type: inline-size; resize: vertical; user-select: none;
  & *, & *::before { box-sizing: border-box; }
  & canvas { position: absolute; inset: 0; width: 100%; height: 100%; touch-action: none; cursor: grab; }
  & canvas.fb-over { cursor: pointer; }
  & canvas.fb-held { cursor: grabbing; }
  .fb-tree { position: absolute; left: 0; top: 0; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); outline: none; white-space: nowrap; }
  &:has(.fb-tree:focus-visible) { box-shadow: inset 0 0 0 2px var(--fb-accent); }
  .fb-bar { position: absolute; left: 10px; top: 10px; display: flex; gap: 6px; align-items: center; max-width: calc(100% - 20px); flex-wrap: wrap; pointer-events: none; }
  .fb-card:not([hidden]) ~ .fb-bar { max-width: calc(100% - min(320px, 62% + 20px)); }
  .fb-bar > * { pointer-events: auto; }
  .fb-group { display: flex; background: var(--fb-panel); border: 1px solid var(--fb-border); border-radius: 7px; box-shadow: 0 1px 3px rgb(0 0 0 / 8%); overflow: hidden; }
  & button { font: inherit; color: var(--fb-ink); background: none; border: 0; margin: 0; padding: 4px 9px; cursor: pointer; min-height: 28px; display: inline-flex; align-items: center; gap: 5px; }
  & button[hidden] { display: none; }
  .fb-group button + button { border-left: 1px solid var(--fb-border); }
  & button:hover { background: var(--fb-hover); }
  & button[aria-pressed="true"] { color: var(--fb-accent); font-weight: 600; }
  & button:focus-visible, & input:focus-visible { outline: 2px solid var(--fb-accent); outline-offset: -2px; }
  & svg.fb-icon { width: 14px; height: 14px; stroke: currentColor; fill: none; stroke-width: 1.6; stroke-linecap: round; stroke-linejoin: round; }
  .fb-search { position: relative; }
  .fb-search input { font: inherit; color: var(--fb-ink); background: var(--fb-panel); border: 1px solid var(--fb-border); border-radius: 7px; padding: 4px 9px; width: 190px; height: 30px; box-shadow: 0 1px 3px rgb(0 0 0 / 8%); }
  .fb-search input::placeholder { color: var(--fb-faint); opacity: 1; }
  .fb-search input:placeholder-shown { text-overflow: ellipsis; }
  .fb-results { position: absolute; left: 0; top: 34px; width: 400px; max-width: 80vw; max-height: 260px; overflow: auto; margin: 0; padding: 4px; list-style: none; background: var(--fb-panel); border: 1px solid var(--fb-border); border-radius: 7px; box-shadow: 0 6px 20px rgb(0 0 0 / 16%); z-index: 3; }
  .fb-results[hidden] { display: none; }
  .fb-results li { padding: 4px 8px; border-radius: 5px; cursor: pointer; display: flex; gap: 10px; justify-content: space-between; }
  .fb-results li span:first-child { overflow-wrap: anywhere; }
  .fb-results li span:last-child { color: var(--fb-faint); white-space: nowrap; }
  .fb-results li[aria-selected="true"], .fb-results li:hover { background: var(--fb-hover); }
  .fb-results li.fb-note { color: var(--fb-faint); cursor: default; background: none; }
  .fb-card { position: absolute; right: 10px; top: 10px; bottom: 10px; width: 300px; max-width: 62%; overflow: auto; height: fit-content; max-height: calc(100% - 20px - var(--fb-base, 0px)); background: var(--fb-panel); border: 1px solid var(--fb-border); border-radius: 9px; box-shadow: 0 6px 20px rgb(0 0 0 / 14%); padding: 12px 14px; user-select: text; z-index: 2; }
  .fb-card[hidden] { display: none; }
  .fb-card:focus-visible { outline: 2px solid var(--fb-accent); outline-offset: -1px; }
  .fb-card h3 { font-size: var(--jp-ui-font-size1, 13px); font-weight: 600; margin: 0 22px 0 0; overflow-wrap: anywhere; line-height: 1.35; color: var(--fb-ink); }
  .fb-card .fb-type { color: var(--fb-faint); margin: 1px 0 0; }
  .fb-card h4 { font-size: var(--jp-ui-font-size0, 11px); font-weight: 600; color: var(--fb-faint); margin: 11px 0 2px; text-transform: none; }
  .fb-card ul { list-style: none; margin: 0; padding: 0; }
  .fb-card li { padding: 1px 0; overflow-wrap: anywhere; display: flex; flex-wrap: wrap; gap: 0 8px; }
  .fb-card li > .fb-code, .fb-card li > button { font-family: var(--jp-code-font-family, ui-monospace, "DejaVu Sans Mono", monospace); font-size: calc(var(--jp-code-font-size, 13px) * 0.85); }
  .fb-card li > button { padding: 0; min-height: 0; color: var(--fb-accent); text-align: left; overflow-wrap: anywhere; }
  .fb-card li > button:hover { text-decoration: underline; background: none; }
  .fb-card li > .fb-detail { color: var(--fb-faint); }
  .fb-card .fb-warning { color: var(--fb-stale); margin: 6px 0 0; }
  .fb-card .fb-actions { display: flex; gap: 6px; margin: 10px 0 0; flex-wrap: wrap; }
  .fb-card .fb-actions button { border: 1px solid var(--fb-border); border-radius: 6px; padding: 2px 9px; min-height: 26px; }
  .fb-card .fb-close { position: absolute; right: 6px; top: 8px; padding: 4px; min-height: 0; border-radius: 5px; color: var(--fb-faint); }
  .fb-tensor h4 { display: flex; justify-content: space-between; align-items: center; }
  .fb-tensor pre { margin: 2px 0 0; padding: 6px 8px; border: 1px solid var(--fb-border); border-radius: 6px; background: var(--fb-paper); color: var(--fb-ink); font: calc(var(--jp-code-font-size, 13px) * 0.85)/1.45 var(--jp-code-font-family, ui-monospace, "DejaVu Sans Mono", monospace); white-space: pre-wrap; overflow-wrap: break-word; word-break: normal; max-height: 180px; overflow: auto; user-select: text; }
  .fb-tensor pre.fb-snippet { white-space: pre; overflow-wrap: normal; }
  .fb-tensor .fb-copy { padding: 0 6px; min-height: 22px; border-radius: 5px; font-weight: 400; color: var(--fb-accent); }
  .fb-tensor .fb-main { margin: 10px 0 0; border: 1px solid var(--fb-accent); border-radius: 6px; padding: 2px 10px; min-height: 26px; color: var(--fb-accent); }
  .fb-tensor .fb-detail { color: var(--fb-faint); overflow-wrap: anywhere; }
  .fb-tensor p { margin: 6px 0 0; }
  .fb-value figure { margin: 8px 0 0; display: grid; gap: 6px; }
  .fb-value figure.fb-two { grid-template-columns: 1fr 1fr; }
  .fb-value img { width: 100%; max-height: 160px; object-fit: contain; image-rendering: pixelated; border: 1px solid var(--fb-border); border-radius: 3px; }
  .fb-value figcaption { color: var(--fb-faint); font-size: var(--jp-ui-font-size0, 11px); grid-column: 1 / -1; }
  .fb-value .fb-ends { display: flex; justify-content: space-between; border-top: 1px solid var(--fb-border); margin-top: -6px; }
  .fb-value figure svg { width: 100%; height: auto; }
  .fb-value path { fill: var(--fb-accent); }
  .fb-value dl { display: grid; grid-template-columns: 1fr 1fr; gap: 0 14px; margin: 8px 0 0; }
  .fb-value dl > div { display: flex; justify-content: space-between; gap: 8px; }
  .fb-value dt { color: var(--fb-faint); font-weight: 400; float: none; width: auto; }
  .fb-value dd { margin: 0; padding: 0; float: none; width: auto; font-variant-numeric: tabular-nums; user-select: text; }
  .fb-tip { position: absolute; pointer-events: none; max-width: 360px; background: var(--fb-panel); border: 1px solid var(--fb-border); border-radius: 6px; padding: 4px 8px; box-shadow: 0 3px 10px rgb(0 0 0 / 15%); overflow-wrap: anywhere; white-space: pre-line; z-index: 2; }
  .fb-tip[hidden] { display: none; }
  .fb-status { position: absolute; left: 12px; bottom: calc(8px + var(--fb-base, 0px)); color: var(--fb-faint); pointer-events: none; font-size: var(--jp-ui-font-size0, 11px); background: color-mix(in srgb, var(--fb-paper) 94%, transparent); border-radius: 4px; padding: 0 4px; }
  .fb-dashes { margin-left: 14px; white-space: nowrap; }
  .fb-dashes i { display: inline-block; width: 20px; height: 9px; margin-right: 5px; border: 1px dashed var(--fb-stale); border-radius: 3px; vertical-align: -1px; }
  .fb-isRetired i { border: 1px dotted var(--fb-faint); }
  .fb-isControl i { height: 0; border-width: 1px 0 0; border-color: var(--fb-faint); vertical-align: 3px; }
  .fb-said { position: absolute; left: 12px; right: 12px; bottom: calc(28px + var(--fb-base, 0px)); color: var(--fb-stale); pointer-events: none; overflow-wrap: anywhere; }
  .fb-said[hidden] { display: none; }
  @container (max-width: 1100px) {
    .fb-card:not([hidden]) ~ .fb-bar .fb-group button span { display: none; }
  }
  @container (max-width: 780px) {
    .fb-group button span { display: none; }
    .fb-search input { width: 150px; }
    .fb-card { width: 260px; }
    .fb-card:not([hidden]) ~ .fb-bar { max-width: calc(100% - 280px); }
  }
  @media print { .fb-bar, .fb-card { display: none; } }
}
`;
