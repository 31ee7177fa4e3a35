// What is drawn of a row of calls: each that is wide enough, and of the others a block for each
// column of pixels, with the colour of what took most of its time, as strong as it was busy.

import { Timeline, firstAfter } from "./timeline.js";

export interface Window {
  /** The moment at its left edge, and how many nanoseconds a pixel has. */
  readonly from: number;
  readonly unit: number;
  readonly width: number;
}

/** What takes what is drawn, from left to right; places are in pixels. */
export interface Pen {
  /** A call that has room of its own. */
  call(call: number, left: number, right: number): void;
  /** Several; `strength` is the part of the time in which there was one, up to 1. */
  block(group: number, strength: number, left: number, right: number): void;
}

const WIDE = 3; // Pixels, from which on a call is drawn alone.
const COLUMN = 2; // Pixels of a column.
const MOST_LOOKED_AT = 24; // Of the calls of one column.
const LEVELS = 4;

/** Draw the calls of a row that are in a window. */
export function drawRow(timeline: Timeline, row: number, window: Window, of: Uint8Array, groups: number, pen: Pen): void {
  const { start, stop } = timeline;
  const { from, unit, width } = window;
  const last = timeline.rowStart[row + 1];
  const until = from + width * unit;
  const column = COLUMN * unit;
  const took = new Float64Array(groups);
  let [open, openLevel, openLeft, openRight] = [-1, 0, 0, 0];
  const close = (): void => {
    if (open >= 0) pen.block(open, openLevel / LEVELS, openLeft, openRight);
    open = -1;
  };
  let call = firstAfter(timeline, row, from);
  while (call < last && start[call] < until) {
    if (stop[call] - start[call] >= WIDE * unit) {
      close();
      pen.call(call, (start[call] - from) / unit, (stop[call] - from) / unit);
      call += 1;
      continue;
    }
    // Columns begin at the same moments wherever the window is, so that nothing flickers when it moves.
    const number = Math.floor(start[call] / column);
    const end = (number + 1) * column;
    const next = nextColumn(timeline, call, last, end, unit);
    const { group, busy } = mostOf(timeline, call, next, of, took);
    const level = Math.max(1, Math.ceil(Math.min(1, busy / column) * LEVELS));
    const left = (number * column - from) / unit;
    if (open === group && openLevel === level && left <= openRight + 0.01) openRight = left + COLUMN;
    else {
      close();
      [open, openLevel, openLeft, openRight] = [group, level, left, left + COLUMN];
    }
    call = next;
  }
  close();
}

/** The first call after one that begins in a later column, or is wide. */
function nextColumn({ start, stop }: Timeline, call: number, last: number, end: number, unit: number): number {
  const isNext = (place: number): boolean => start[place] >= end;
  // In strides that double, and then by halves: a column may have a hundred thousand.
  let stride = 1;
  while (call + stride < last && !isNext(call + stride)) stride *= 2;
  let [low, high] = [call + (stride >> 1), Math.min(last, call + stride)];
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (isNext(middle)) high = middle;
    else low = middle;
  }
  // Only the last one of a column can be wide: what is wide fills the next.
  return high - 1 > call && stop[high - 1] - start[high - 1] >= WIDE * unit ? high - 1 : high;
}

/** Which group took most of the time of some calls, and how long these took together; of many some are looked at. */
function mostOf({ start, stop }: Timeline, from: number, to: number, of: Uint8Array, took: Float64Array): { group: number; busy: number } {
  const count = to - from;
  if (count === 1) return { group: of[from], busy: stop[from] - start[from] };
  took.fill(0);
  const stride = Math.max(1, count / MOST_LOOKED_AT);
  let busy = 0;
  let looked = 0;
  for (let at = from; at < to; at += stride) {
    const call = Math.floor(at);
    const time = stop[call] - start[call];
    took[of[call]] += time;
    busy += time;
    looked += 1;
  }
  let group = 0;
  for (let i = 1; i < took.length; i++) if (took[i] > took[group]) group = i;
  return { group: busy > 0 ? group : of[from], busy: (busy * count) / looked };
}
