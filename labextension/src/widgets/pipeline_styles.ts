// The style of a view of queues. Colours are those of every view, charts those of summaries.

import { CHARTS, TIPS } from "./summary_styles.js";
import { COLOURS } from "./styles.js";

export const PIPELINE_STYLES = `${COLOURS}${CHARTS}
.fb-pipeline {
  position: relative; display: flex; flex-direction: column; box-sizing: border-box; max-height: 640px; overflow: hidden;
  border: 1px solid var(--fb-border); border-radius: 8px; background: var(--fb-paper); color: var(--fb-ink);
  font: var(--jp-ui-font-size1, 12px)/1.45 var(--jp-ui-font-family, system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif);
  --fb-good: light-dark(#0a7d5a, #2cc79b); --fb-slow: light-dark(#d55e00, #ff8a47);
  & *, & *::before { box-sizing: border-box; }
  [hidden] { display: none !important; }
  .fb-plot:focus-visible { outline: 2px solid var(--fb-accent); outline-offset: -1px; }
  .fb-faint { color: var(--fb-faint); }
  .fb-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .fb-value { font-variant-numeric: tabular-nums; }
  .fb-verdict { display: flex; gap: 12px; padding: 13px 16px; align-items: flex-start; flex: none; }
  .fb-verdict h3 { font: inherit; font-size: 14px; line-height: 20px; font-weight: 600; margin: 0; color: var(--fb-ink); overflow-wrap: anywhere; }
  .fb-verdict p { margin: 2px 0 0; overflow-wrap: anywhere; }
  .fb-mark { width: 12px; height: 12px; border-radius: 50%; flex: none; margin-top: 4px; background: var(--fb-faint); }
  &[data-state="waits"] .fb-mark { background: var(--fb-slow); }
  &[data-state="keeps up"] .fb-mark { background: var(--fb-good); }
  &[data-state="failed"] .fb-mark { background: var(--fb-stale); border-radius: 3px; }
  &[data-state="failed"] .fb-verdict h3 { color: var(--fb-stale); }
  .fb-said { padding: 0 16px 10px 40px; color: var(--fb-stale); overflow-wrap: anywhere; flex: none; }
  .fb-body { overflow: auto; flex: 1 1 auto; position: relative; container-type: inline-size; border-top: 1px solid var(--fb-border); }
  .fb-queue { display: grid; grid-template-columns: minmax(120px, 180px) minmax(0, 1fr) minmax(0, 1fr) 156px; gap: 4px 16px; padding: 12px 16px 10px; }
  .fb-queue + .fb-queue { border-top: 1px solid var(--fb-border); }
  .fb-about { min-width: 0; }
  .fb-about h4 { font: inherit; font-size: var(--jp-ui-font-size1, 13px); font-weight: 600; margin: 0 0 1px; color: var(--fb-ink); overflow-wrap: anywhere; text-transform: none; letter-spacing: 0; }
  .fb-line { overflow-wrap: anywhere; }
  & ul { list-style: none; margin: 0; padding: 0; }
  .fb-runner { display: flex; gap: 7px; align-items: baseline; margin-top: 4px; color: var(--fb-faint); overflow-wrap: anywhere; }
  .fb-runner i { width: 7px; height: 7px; border-radius: 50%; flex: none; border: 1.5px solid var(--fb-faint); }
  .fb-runner.fb-is-runs { color: var(--fb-ink); }
  .fb-runner.fb-is-runs i { background: var(--fb-good); border-color: var(--fb-good); }
  .fb-runner.fb-is-failed { color: var(--fb-stale); }
  .fb-runner.fb-is-failed i { background: var(--fb-stale); border-color: var(--fb-stale); border-radius: 1px; }
  .fb-chart { min-width: 0; }
  .fb-chart header { display: flex; justify-content: space-between; gap: 8px; padding-right: 14px; white-space: nowrap; }
  .fb-chart header .fb-value { font-weight: 600; display: flex; gap: 8px; }
  .fb-plot { position: relative; border-radius: 6px; min-width: 0; }
  .fb-shares { display: flex; flex-direction: column; gap: 9px; min-width: 0; }
  .fb-share { display: grid; grid-template-columns: 1fr auto; gap: 3px 8px; }
  .fb-share .fb-value { font-weight: 600; }
  .fb-meter { grid-column: 1 / -1; height: 6px; border-radius: 3px; background: var(--fb-hover); overflow: hidden; }
  .fb-meter i { display: block; height: 100%; border-radius: 3px; }
  .fb-waits { grid-column: 1 / -1; }
  .fb-queue.fb-isUnused { grid-template-columns: minmax(120px, 180px) 1fr; align-items: center; }
  .fb-isUnused > :is(.fb-chart, .fb-shares, .fb-waits), .fb-queue:not(.fb-isUnused) > .fb-unused { display: none; }
  &[data-ended="true"] .fb-waits { display: none; }
  .fb-waits li { overflow-wrap: anywhere; }
  .fb-waitsNow { color: var(--fb-slow); }
  .fb-swatch { width: 14px; height: 0; border-top: 3px solid; border-radius: 1px; flex: none; }
  .fb-run { display: inline-flex; align-items: center; gap: 6px; }
  .fb-more { padding: 6px 16px; border-top: 1px solid var(--fb-border); color: var(--fb-faint); flex: none; }
${TIPS}  @container (max-width: 840px) {
    .fb-queue { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
  }
  @container (max-width: 420px) { .fb-queue { grid-template-columns: minmax(0, 1fr); } }
}
`;
