// The style of the key of what is laid over a picture, and of pictures side by side.

export const OVERLAY_STYLES = `
.fb-graph {
  .fb-key { position: absolute; left: 0; right: 0; bottom: 0; border-top: 1px solid var(--fb-border); background: var(--fb-panel); padding: 7px 12px 8px; }
  .fb-key[hidden] { display: none; }
  .fb-keyHead { display: flex; gap: 16px; align-items: baseline; justify-content: space-between; }
  .fb-keyHead strong { font-weight: 600; }
  .fb-keyHead label { flex: none; display: inline-flex; align-items: center; gap: 6px; color: var(--fb-faint); }
  .fb-keyHead select { font: inherit; color: var(--fb-ink); background: var(--fb-paper); border: 1px solid var(--fb-border); border-radius: 6px; padding: 1px 4px; height: 24px; max-width: 150px; }
  .fb-keyHead select:focus-visible { outline: 2px solid var(--fb-accent); outline-offset: -1px; }
  .fb-key ul { display: flex; flex-wrap: wrap; gap: 2px 18px; list-style: none; margin: 3px 0 0; padding: 0; }
  .fb-key li { display: inline-flex; align-items: baseline; gap: 7px; min-height: 24px; }
  .fb-key li b { font-weight: 600; color: var(--fb-ink); }
  .fb-key li span { color: var(--fb-faint); font-variant-numeric: tabular-nums; }
  .fb-key button { padding: 1px 6px 1px 4px; margin-left: -4px; min-height: 24px; gap: 7px; align-items: baseline; border-radius: 5px; text-align: left; }
  .fb-key button[aria-pressed="true"] { background: var(--fb-hover); color: inherit; font-weight: inherit; box-shadow: inset 0 0 0 1px var(--fb-border); }
  .fb-keyColour { width: 16px; height: 0; border-top: 5px solid; flex: none; position: relative; top: -2px; }
  .fb-keyLine { width: 18px; height: 0; border-top: 2.4px solid var(--fb-ink); flex: none; position: relative; top: -4px; }
  .fb-keyScale { align-self: center; width: 110px; height: 10px; border-radius: 2px; border: 1px solid var(--fb-border); flex: none; }
  .fb-keyMark { font: 600 9px/13px inherit; font-style: normal; font-size: 9px; line-height: 11px; padding: 0 5px; border: 1px solid var(--fb-ink); border-radius: 7px; color: var(--fb-ink); flex: none; }
  &.fb-linked .fb-key { bottom: 230px; }
  &.fb-linked .fb-card:not([hidden]) { display: flex; flex-wrap: wrap; align-content: flex-start; align-items: flex-start; gap: 0 24px; left: 0; right: 0; top: auto; bottom: 0; width: auto; max-width: none; height: 230px; max-height: none; border-width: 1px 0 0; border-radius: 0; box-shadow: none; z-index: 1; }
  &.fb-linked .fb-card > h3 { flex: 1 0 calc(100% - 30px); }
  &.fb-linked .fb-card > .fb-type { margin: 4px 0 0; }
  &.fb-linked .fb-card > .fb-actions { margin: 2px 0 0; flex: 1 0 60%; }
  &.fb-linked .fb-card > .fb-tensor { flex: 1 0 100%; }
  &.fb-linked .fb-card > .fb-warning { flex: 1 0 100%; }
  &.fb-linked .fb-card:not([hidden]) ~ .fb-bar { max-width: calc(100% - 20px); }
  .fb-hint { position: absolute; left: 0; right: 0; bottom: 0; height: 230px; margin: 0; display: grid; place-content: center; padding: 0 20px; text-align: center; color: var(--fb-faint); background: var(--fb-panel); border-top: 1px solid var(--fb-border); }
}
.fb-placements { display: grid; gap: 10px; container-type: inline-size; }
.fb-placements > .fb-panes { display: grid; gap: 10px; }
.fb-placements > .fb-panes.fb-two { grid-template-columns: 1fr 1fr; }
@container (max-width: 640px) {
  .fb-placements > .fb-panes.fb-two { grid-template-columns: 1fr; }
}
`;
