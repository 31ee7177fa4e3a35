// The style of a view of a trace. Colours are those of every view.

import { COLOURS } from "./styles.js";
import { TIPS } from "./summary_styles.js";

export const TIMELINE_STYLES = `${COLOURS}
.fb-timeline {
  position: relative; display: flex; flex-direction: column; box-sizing: border-box; overflow: hidden;
  border: 1px solid var(--fb-border); border-radius: 8px; background: var(--fb-panel); color: var(--fb-ink);
  font: var(--jp-ui-font-size1, 12px)/1.45 var(--jp-ui-font-family, system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif);
  container-type: inline-size; user-select: none;
  & *, & *::before { box-sizing: border-box; }
  [hidden] { display: none !important; }
  & button { font: inherit; color: inherit; background: none; border: 0; margin: 0; padding: 0 9px; cursor: pointer; min-height: 26px; display: inline-flex; align-items: center; gap: 5px; white-space: nowrap; }
  & button:hover { background: var(--fb-hover); }
  & button:disabled { color: var(--fb-faint); opacity: 0.6; cursor: default; background: none; }
  & :is(button, input, select, canvas):focus-visible { outline: 2px solid var(--fb-accent); outline-offset: -2px; }
  & svg.fb-icon { width: 14px; height: 14px; stroke: currentColor; fill: none; stroke-width: 1.6; stroke-linecap: round; stroke-linejoin: round; flex: none; }
  .fb-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .fb-faint { color: var(--fb-faint); }
  .fb-bar { display: flex; flex-wrap: wrap; gap: 8px 10px; align-items: center; padding: 9px 12px; }
  .fb-bar h3 { font: inherit; font-weight: 600; margin: 0; flex: 1 1 100%; color: var(--fb-ink); overflow-wrap: anywhere; }
  .fb-bar h3 span { font-weight: 400; color: var(--fb-stale); }
  .fb-group { display: flex; border: 1px solid var(--fb-border); border-radius: 6px; overflow: hidden; background: var(--fb-paper); }
  .fb-group > * + * { border-left: 1px solid var(--fb-border); }
  .fb-group output { padding: 0 10px; align-self: center; line-height: 26px; min-width: 84px; text-align: center; font-variant-numeric: tabular-nums; }
  .fb-bar input { font: inherit; color: var(--fb-ink); background: var(--fb-paper); border: 1px solid var(--fb-border); border-radius: 6px; padding: 0 9px; height: 28px; width: 200px; }
  .fb-bar input::placeholder { color: var(--fb-faint); opacity: 1; }
  .fb-bar input:placeholder-shown { text-overflow: ellipsis; }
  .fb-found { color: var(--fb-faint); font-variant-numeric: tabular-nums; }
  .fb-bar label { margin-left: auto; display: inline-flex; align-items: center; gap: 6px; color: var(--fb-faint); }
  .fb-bar select { font: inherit; color: var(--fb-ink); background: var(--fb-paper); border: 1px solid var(--fb-border); border-radius: 6px; padding: 0 4px; height: 28px; }
  .fb-overview { display: block; width: calc(100% - 24px); height: 38px; margin: 0 12px 10px; border-radius: 4px; border: 1px solid var(--fb-border); cursor: ew-resize; touch-action: none; }
  .fb-lanes { display: block; width: 100%; touch-action: none; cursor: grab; border-top: 1px solid var(--fb-border); border-bottom: 1px solid var(--fb-border); }
  .fb-lanes.fb-over { cursor: pointer; }
  .fb-lanes.fb-held { cursor: grabbing; }
  & ul.fb-legend { display: flex; flex-wrap: wrap; gap: 2px 12px; list-style: none; margin: 0; padding: 6px 12px; }
  .fb-legend button { padding: 1px 6px 1px 4px; margin-left: -4px; min-height: 24px; gap: 7px; border-radius: 5px; white-space: normal; text-align: left; overflow-wrap: anywhere; }
  .fb-legend button[aria-pressed="true"] { background: var(--fb-hover); box-shadow: inset 0 0 0 1px var(--fb-border); }
  .fb-legend i { width: 12px; height: 12px; border-radius: 3px; flex: none; }
  .fb-legend span { color: var(--fb-faint); font-variant-numeric: tabular-nums; }
  .fb-call { border-top: 1px solid var(--fb-border); padding: 10px 12px 12px; min-height: 128px; user-select: text; }
  .fb-call h4 { font: inherit; font-size: var(--jp-ui-font-size1, 13px); font-weight: 600; margin: 0; color: var(--fb-ink); overflow-wrap: anywhere; text-transform: none; letter-spacing: 0; }
  .fb-call h4 span { font-weight: 400; color: var(--fb-faint); margin-left: 5px; font-size: var(--jp-ui-font-size1, 12px); }
  .fb-call dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(118px, 1fr)); gap: 8px 14px; margin: 8px 0 0; }
  .fb-call dt { color: var(--fb-faint); font-weight: 400; font-size: var(--jp-ui-font-size0, 11px); float: none; width: auto; margin: 0; padding: 0; }
  .fb-call dd { margin: 0; padding: 0; float: none; width: auto; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
  .fb-call .fb-broad { grid-column: span 2; }
  .fb-call header { display: flex; justify-content: space-between; gap: 12px; align-items: flex-start; }
  .fb-call header .fb-group { flex: none; }
  .fb-hint { color: var(--fb-faint); margin: 0; max-width: 104ch; line-height: 1.8; }
  .fb-hint kbd { font: inherit; white-space: nowrap; color: var(--fb-ink); border: 1px solid var(--fb-border); border-radius: 4px; padding: 0 5px; background: var(--fb-paper); }
  .fb-nothing { padding: 34px 16px; color: var(--fb-faint); text-align: center; }
${TIPS}  @container (max-width: 700px) {
    .fb-group button span { display: none; }
    .fb-bar label { margin-left: 0; }
  }
}
`;
