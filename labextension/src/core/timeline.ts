// A trace as it comes from Python: lanes of rows, and for each call numbers; what lies where in it.
//
// `flowbook/widgets/timelines/payload.py` says in which form. Times are in nanoseconds from the
// beginning of the first step. Within a row calls do not overlap.

import { unpacked } from "./packing.js";
import { beside } from "./words.js";

export const FORMAT = 2;

export interface Lane {
  readonly device: string;
  readonly name: string;
  /** Whether it is of what is asynchronous, and keeps no thread busy. */
  readonly waits: boolean;
  /** The first of its rows, and how many there are. */
  readonly first: number;
  readonly rows: number;
  /** How long something was in it. */
  readonly busy: number;
}

/** What some calls have in common. */
export interface Work {
  readonly operation: string;
  readonly type: string;
  /** The cell and the line where it was defined. */
  readonly site: string;
  /** What it stands for beside. */
  readonly others: readonly string[];
  /** The operation of the graph that it is of. */
  readonly source: string;
  /** The Python variable that has its value, where that says what the name does not. */
  readonly variable: string;
}

export interface Group {
  readonly label: string;
  readonly busy: number;
}

export interface Colouring {
  readonly by: string;
  readonly groups: readonly Group[];
  /** For each call the number of its group. */
  readonly of: Uint8Array;
  /** Whether the last group stands for all that have no colour of their own. */
  readonly hasOthers: boolean;
}

export interface Timeline {
  readonly title: string;
  readonly remark: string;
  readonly end: number;
  readonly lanes: readonly Lane[];
  /** The lane of each row. */
  readonly laneOf: readonly number[];
  readonly works: readonly Work[];
  readonly colourings: readonly Colouring[];
  /** Where the calls of each row begin; after the last row, how many calls there are. */
  readonly rowStart: Int32Array;
  readonly row: Int32Array;
  readonly start: Float64Array;
  readonly stop: Float64Array;
  readonly delay: Float64Array;
  readonly work: Int32Array;
  readonly step: Int32Array;
  readonly iteration: Int32Array;
  readonly bytes: Float64Array;
  readonly live: Float64Array;
  /** What was sent, and by which call it was received. */
  readonly sent: Int32Array;
  readonly received: Int32Array;
  readonly steps: readonly { readonly start: number; readonly end: number; readonly thread: string }[];
}

interface Header {
  format: number;
  title: string;
  remark: string;
  end: number;
  lanes: [string, string, boolean, number, number][];
  works: [string, string, string, string[], string, string][];
  threads: string[];
  colourings: [string, [string, number][], boolean][];
}

/** Read unpacked bytes. */
export function readTimeline(buffer: ArrayBuffer): Timeline {
  const { header, columns } = unpacked<Header>(buffer);
  if (header.format !== FORMAT) {
    throw new Error(`the trace has format ${header.format}, this page reads ${FORMAT}: reload it`);
  }
  const whole = columns as Record<string, Int32Array>;
  const real = columns as Record<string, Float64Array>;
  let rows = 0;
  const lanes = header.lanes.map(([device, name, waits, count, busy]) => {
    const lane = { device, name, waits, first: rows, rows: count, busy };
    rows += count;
    return lane;
  });
  return {
    title: header.title,
    remark: header.remark,
    end: header.end,
    lanes,
    laneOf: lanes.flatMap((lane, i) => Array<number>(lane.rows).fill(i)),
    works: header.works.map(([operation, type, site, others, source, variable]) => ({ operation, type, site, others, source, variable })),
    colourings: header.colourings.map(([by, groups, hasOthers], i) => ({
      by,
      groups: groups.map(([label, busy]) => ({ label, busy })),
      of: columns[`group${i}`] as Uint8Array,
      hasOthers,
    })),
    rowStart: rowStarts(whole["row"], rows),
    row: whole["row"],
    start: real["start"],
    stop: real["end"],
    delay: real["delay"],
    work: whole["work"],
    step: whole["step"],
    iteration: whole["iteration"],
    bytes: real["bytes"],
    live: real["live"],
    sent: whole["sent"],
    received: whole["received"],
    steps: header.threads.map((thread, i) => ({ start: real["stepStart"][i], end: real["stepEnd"][i], thread })),
  };
}

function rowStarts(row: Int32Array, rows: number): Int32Array {
  const found = new Int32Array(rows + 1);
  for (const each of row) found[each + 1] += 1;
  for (let i = 0; i < rows; i++) found[i + 1] += found[i];
  return found;
}

/** The first call of a row, from a place on, that ends after a moment; the place after the row if none does. */
export function firstAfter(timeline: Timeline, row: number, moment: number, from = timeline.rowStart[row]): number {
  let [low, high] = [from, timeline.rowStart[row + 1]];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (timeline.stop[middle] > moment) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The call of a row nearest to a moment, not further from it than `reach`. */
export function nearest(timeline: Timeline, row: number, moment: number, reach = Infinity): number | null {
  const [begin, end] = [timeline.rowStart[row], timeline.rowStart[row + 1]];
  const after = firstAfter(timeline, row, moment);
  let [best, least] = [-1, Infinity];
  for (const call of [after - 1, after]) {
    if (call < begin || call >= end) continue;
    const away = Math.max(timeline.start[call] - moment, moment - timeline.stop[call], 0);
    if (away < least) [best, least] = [call, away];
  }
  return best >= 0 && least <= reach ? best : null;
}

/** The last part of a call's name; of what exchanges something what it does with what. As in `svg.py`. */
export function labelOf({ operation, type, variable }: Work): string {
  const last = lastPart(operation);
  if (type !== "Send" && type !== "Recv") return beside(variable, last);
  return `${last} ${lastPart(operation.slice(0, -last.length - 1).replace(/\/done$/, ""))}`;
}

function lastPart(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** The works that are of an operation, or of one in a scope of that name; of what they stand for too. */
export function worksOf(timeline: Timeline, name: string): Set<number> {
  const found = new Set<number>();
  const inside = `${name}/`;
  timeline.works.forEach(({ source, others }, i) => {
    const names = [source, ...others];
    if (names.some((each) => each === name || each.startsWith(inside))) found.add(i);
  });
  return found;
}

/** The works whose name or type has every word of a query. */
export function search(timeline: Timeline, query: string): Set<number> {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = new Set<number>();
  if (words.length === 0) return found;
  timeline.works.forEach(({ operation, type, others, variable }, i) => {
    const text = [operation, variable, type, ...others].join(" ").toLowerCase();
    if (words.every((word) => text.includes(word))) found.add(i);
  });
  return found;
}

/** Of calls that are of some works the one that begins next after a call, or last before it; round the ends. */
export function another(timeline: Timeline, works: ReadonlySet<number>, from: number | null, forward: boolean): number | null {
  const { start, work } = timeline;
  const at = from === null ? (forward ? -Infinity : Infinity) : start[from];
  const isBefore = (a: number, b: number): boolean => start[a] < start[b] || (start[a] === start[b] && a < b);
  let [next, end] = [-1, -1];
  for (let call = 0; call < work.length; call++) {
    if (!works.has(work[call]) || call === from) continue;
    const isBeyond = forward
      ? start[call] > at || (start[call] === at && call > (from ?? -1))
      : start[call] < at || (start[call] === at && call < (from ?? Infinity));
    if (isBeyond && (next < 0 || isBefore(call, next) === forward)) next = call;
    if (end < 0 || isBefore(call, end) === forward) end = call;
  }
  if (next >= 0) return next;
  return end >= 0 ? end : from;
}
