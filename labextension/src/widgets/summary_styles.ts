// The style of the charts of summaries. Colours are those of every view.

import { COLOURS } from "./styles.js";

// What uPlot needs of its own style sheet.
export const CHARTS = `
.uplot, .uplot *, .uplot *::before, .uplot *::after { box-sizing: border-box; }
.uplot { width: min-content; line-height: 1.5; }
.u-wrap { position: relative; user-select: none; }
.u-over, .u-under { position: absolute; }
.u-under { overflow: hidden; }
.uplot canvas { display: block; position: relative; width: 100%; height: 100%; }
.u-axis { position: absolute; }
.u-select { position: absolute; pointer-events: none; background: color-mix(in srgb, var(--fb-accent) 16%, transparent); }
.u-cursor-x, .u-cursor-y { position: absolute; left: 0; top: 0; pointer-events: none; will-change: transform; }
.u-hz .u-cursor-x { height: 100%; border-right: 1px solid var(--fb-faint); opacity: 0.6; }
.u-cursor-pt { position: absolute; top: 0; left: 0; border-radius: 50%; border: 0 solid; pointer-events: none; will-change: transform; background-clip: padding-box !important; }
.u-axis.u-off, .u-select.u-off, .u-cursor-x.u-off, .u-cursor-y.u-off, .u-cursor-pt.u-off { display: none; }
`;

// What is said beside the pointer; a rule within a view's.
export const TIPS = `  .fb-tip { position: absolute; pointer-events: none; max-width: 100%; background: var(--fb-panel); border: 1px solid var(--fb-border); border-radius: 6px; padding: 5px 9px; box-shadow: 0 3px 10px rgb(0 0 0 / 15%); z-index: 2; overflow: hidden; }
  .fb-tip table { border-collapse: collapse; border: 0; margin: 0; font-size: var(--jp-ui-font-size1, 12px); }
  .fb-tip tr { background: none; }
  .fb-tip td { padding: 0 0 0 10px; border: 0; text-align: left; white-space: nowrap; line-height: 1.5; color: var(--fb-ink); max-width: 180px; overflow: hidden; text-overflow: ellipsis; }
  .fb-tip td:first-child { padding-left: 0; }
  .fb-tip td.fb-number { text-align: right; font-variant-numeric: tabular-nums; }
  .fb-tip td.fb-faint { color: var(--fb-faint); }
`;

export const SUMMARY_STYLES = `${COLOURS}${CHARTS}
.fb-summaries {
  position: relative; display: flex; flex-direction: column; box-sizing: border-box;
  border: 1px solid var(--fb-border); border-radius: 8px; background: var(--fb-paper); color: var(--fb-ink);
  font: var(--jp-ui-font-size1, 12px)/1.45 var(--jp-ui-font-family, system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif);
  & *, & *::before { box-sizing: border-box; }
  [hidden] { display: none !important; }
  & button { font: inherit; color: inherit; background: none; border: 0; margin: 0; padding: 0; cursor: pointer; }
  & button:focus-visible, & input:focus-visible, .fb-plot:focus-visible { outline: 2px solid var(--fb-accent); outline-offset: -1px; }
  & svg.fb-icon { width: 14px; height: 14px; stroke: currentColor; fill: none; stroke-width: 1.6; stroke-linecap: round; stroke-linejoin: round; flex: none; }
  .fb-faint { color: var(--fb-faint); }
  .fb-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .fb-controls { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 10px; padding: 10px 12px; border-bottom: 1px solid var(--fb-border); }
  .fb-controls > * { height: 28px; }
  .fb-filter { font: inherit; color: var(--fb-ink); background: var(--fb-panel); border: 1px solid var(--fb-border); border-radius: 6px; padding: 0 9px; width: 180px; flex: 0 1 180px; min-width: 110px; }
  .fb-filter::placeholder { color: var(--fb-faint); opacity: 1; }
  .fb-segments { display: flex; border: 1px solid var(--fb-border); border-radius: 6px; background: var(--fb-panel); overflow: hidden; }
  .fb-segments button { padding: 0 10px; }
  .fb-segments button + button { border-left: 1px solid var(--fb-border); }
  .fb-segments button:hover { background: var(--fb-hover); }
  .fb-segments button[aria-pressed="true"] { color: var(--fb-accent); font-weight: 600; background: color-mix(in srgb, var(--fb-accent) 10%, transparent); }
  .fb-smoothing { display: flex; align-items: center; gap: 8px; color: var(--fb-faint); }
  .fb-smoothing output { color: var(--fb-ink); font-variant-numeric: tabular-nums; min-width: 4ch; }
  & input[type="range"] { accent-color: var(--fb-accent); margin: 0; width: 110px; min-width: 40px; height: 16px; }
  .fb-legend { display: flex; flex-wrap: wrap; gap: 4px 6px; padding: 8px 12px; border-bottom: 1px solid var(--fb-border); max-height: 96px; overflow: auto; flex: none; }
  .fb-chip { display: inline-flex; align-items: center; gap: 7px; padding: 2px 9px; border: 1px solid var(--fb-border); border-radius: 999px; background: var(--fb-panel); min-height: 24px; }
  .fb-chip:hover { background: var(--fb-hover); }
  .fb-chip[aria-pressed="false"] { color: var(--fb-faint); text-decoration: line-through; }
  .fb-chip[aria-pressed="false"] .fb-swatch { opacity: 0.25; }
  .fb-all { color: var(--fb-accent); border-color: transparent; background: none; }
  .fb-swatch { width: 14px; height: 0; border-top: 3px solid; border-radius: 1px; flex: none; }
  .fb-run { display: inline-flex; align-items: center; gap: 6px; overflow-wrap: anywhere; }
  .fb-said { padding: 6px 12px; color: var(--fb-stale); white-space: pre-line; overflow-wrap: anywhere; max-height: 80px; overflow: auto; flex: none; }
  .fb-body { min-height: 60px; position: relative; container-type: inline-size; }
  .fb-head { width: 100%; display: flex; align-items: center; gap: 6px; }
  .fb-head { padding: 9px 12px 5px; font-weight: 600; }
  .fb-head .fb-prefix { overflow-wrap: anywhere; text-align: left; }
  .fb-head .fb-faint { font-weight: 400; }
  .fb-head .fb-icon { transition: transform 120ms; color: var(--fb-faint); }
  .fb-head[aria-expanded="true"] .fb-icon { transform: rotate(90deg); }
  .fb-histograms { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(270px, 100%), 1fr)); gap: 10px; }
  .fb-cards { display: flex; flex-wrap: wrap; gap: 10px; padding: 0 12px; }
  .fb-tags { padding-bottom: 8px; }
  .fb-tags + .fb-tags { border-top: 1px solid var(--fb-border); }
  .fb-card { border: 1px solid var(--fb-border); border-radius: 8px; background: var(--fb-panel); flex: 1 1 270px; min-width: min(270px, 100%); max-width: 100%; display: flex; flex-direction: column; }
  .fb-card.fb-isWide, .fb-card.fb-isBroad { flex-basis: 100%; }
  .fb-card > header { display: flex; align-items: center; gap: 8px; padding: 7px 8px 2px 12px; }
  .fb-card h4 { font: inherit; font-weight: 600; margin: 0; color: var(--fb-ink); overflow: hidden; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow-wrap: anywhere; flex: 1 1 auto; text-transform: none; letter-spacing: 0; }
  .fb-headline { font-variant-numeric: tabular-nums; color: var(--fb-ink); white-space: nowrap; }
  .fb-wide { color: var(--fb-faint); padding: 3px; border-radius: 5px; display: inline-flex; opacity: 0.65; }
  .fb-wide:hover, .fb-wide[aria-pressed="true"] { background: var(--fb-hover); opacity: 1; }
  .fb-isBroad .fb-wide { display: none; }
  .fb-card.fb-scalar .fb-room { min-height: 186px; }
  .fb-card.fb-histogram .fb-room { min-height: 196px; }
  .fb-card.fb-image .fb-room, .fb-card.fb-text .fb-room { min-height: 80px; }
  .fb-room { padding: 0 4px 6px; min-width: 0; }
  .fb-plot { position: relative; border-radius: 6px; min-width: 0; }
  .fb-splits { display: flex; flex-wrap: wrap; gap: 2px 14px; padding: 0 8px 2px; color: var(--fb-faint); }
  .fb-splits b { color: var(--fb-ink); font-weight: 400; font-variant-numeric: tabular-nums; }
  .fb-histograms canvas { display: block; width: 100%; }
  .fb-histograms .fb-run { padding: 0 8px; }
${TIPS}  .fb-note { margin: 2px 8px 0; color: var(--fb-stale); font-size: var(--jp-ui-font-size0, 11px); line-height: 1.4; }
  .fb-note.fb-faint { color: var(--fb-faint); }
  .fb-steps { display: flex; align-items: center; gap: 10px; padding: 2px 8px 6px; }
  .fb-steps input[type="range"] { flex: 1 1 auto; width: auto; max-width: 260px; }
  .fb-at { color: var(--fb-faint); font-variant-numeric: tabular-nums; white-space: nowrap; }
  .fb-gallery { display: flex; flex-wrap: wrap; gap: 10px; padding: 0 8px; }
  .fb-gallery figure { margin: 0; max-width: 100%; }
  .fb-gallery img { display: block; max-width: 100%; height: auto; border-radius: 4px; background: var(--fb-hover); }
  .fb-gallery figcaption { font-size: var(--jp-ui-font-size0, 11px); display: flex; flex-direction: column; padding-top: 3px; }
  .fb-texts pre { font: calc(var(--jp-code-font-size, 13px) * 0.85)/1.5 var(--jp-code-font-family, ui-monospace, "DejaVu Sans Mono", monospace); color: var(--fb-ink); background: var(--fb-hover); border-radius: 5px; margin: 0 8px 6px; padding: 6px 9px; white-space: pre-wrap; overflow-wrap: break-word; word-break: normal; max-height: 220px; overflow: auto; }
  .fb-texts > div:last-child { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(270px, 100%), 1fr)); }
  .fb-texts .fb-run { padding: 0 8px 3px; }
  .fb-more { display: block; margin: 8px auto 2px; color: var(--fb-accent); padding: 4px 10px; border-radius: 6px; }
  .fb-more:hover { background: var(--fb-hover); }
  .fb-nothing { display: flex; flex-direction: column; align-items: center; gap: 2px; padding: 34px 16px; color: var(--fb-faint); text-align: center; overflow-wrap: anywhere; }
  .fb-nothing strong { color: var(--fb-ink); font-size: var(--jp-ui-font-size1, 13px); }
  .fb-status { padding: 5px 12px; border-top: 1px solid var(--fb-border); color: var(--fb-faint); font-size: var(--jp-ui-font-size0, 11px); }
  .fb-status:empty { display: none; }
  @container (max-width: 300px) { .fb-cards { padding: 0 6px; } }
}
`;
