// What a session's queues do, as it comes from Python: all that is shown, anew each time.
//
// `flowbook/widgets/pipelines/payload.py` says in which form.

import { unpacked } from "./packing.js";

export const FORMAT = 1;

export type VerdictState = "waits" | "keeps up" | "failed" | "unused" | "empty";

export interface Verdict {
  readonly state: VerdictState;
  readonly text: string;
  readonly detail: string;
}

export interface RunnerState {
  readonly name: string;
  /** "runs", "not started", "ended", "stopped" or "failed". */
  readonly state: string;
  readonly text: string;
}

export interface Waiting {
  readonly text: string;
  readonly wish: string;
  /** For how long, when it was looked at. */
  readonly seconds: number;
  readonly isRunners: boolean;
}

export interface Queue {
  readonly name: string;
  readonly operation: string;
  readonly kind: string;
  readonly place: string;
  /** Less than zero: without a limit. */
  readonly capacity: number;
  readonly fill: number;
  readonly put: number;
  readonly taken: number;
  readonly putRate: number;
  readonly takenRate: number;
  readonly roomShare: number;
  readonly elementShare: number;
  /** Zero if nobody has asked for an element. */
  readonly seconds: number;
  readonly feedsTraining: boolean;
  readonly isClosed: boolean;
  readonly runners: readonly RunnerState[];
  readonly waiting: readonly Waiting[];
  readonly moreWaiting: number;
  /** For each sample: how many elements it held, and a second how many were put in and taken out. */
  readonly fills: Float64Array;
  readonly putRates: readonly number[];
  readonly takenRates: readonly number[];
}

export interface Pipeline {
  readonly said: string;
  readonly verdict: Verdict;
  readonly queues: readonly Queue[];
  /** How many queues there are beside. */
  readonly more: number;
  /** For each sample how long ago it was taken, in seconds in which something happened: from less than zero to zero. */
  readonly times: readonly number[];
}

interface Header {
  format: number;
  said: string;
  verdict: [VerdictState, string, string];
  queues: (Omit<Queue, "runners" | "waiting" | "fills" | "putRates" | "takenRates"> & {
    runners: [string, string, string][];
    waiting: [string, string, number, boolean][];
  })[];
  more: number;
}

/** Read unpacked bytes. */
export function readPipeline(buffer: ArrayBuffer): Pipeline {
  const { header, columns } = unpacked<Header>(buffer);
  if (header.format !== FORMAT) {
    throw new Error(`the queues have format ${header.format}, this page reads ${FORMAT}: reload it`);
  }
  const { clock, fill, put, taken } = columns as Record<string, Float64Array>;
  const count = clock.length;
  const last = count > 0 ? clock[count - 1] : 0;
  const queues = header.queues.map((queue, place) => {
    const own = (column: Float64Array): Float64Array => column.subarray(place * count, (place + 1) * count);
    return {
      ...queue,
      runners: queue.runners.map(([name, state, text]) => ({ name, state, text })),
      waiting: queue.waiting.map(([text, wish, seconds, isRunners]) => ({ text, wish, seconds, isRunners })),
      fills: own(fill),
      putRates: rates(clock, own(put)),
      takenRates: rates(clock, own(taken)),
    };
  });
  const [state, text, detail] = header.verdict;
  const times = Array.from(clock, (at) => at - last);
  return { said: header.said, verdict: { state, text, detail }, queues, more: header.more, times };
}

const RATE_SAMPLES = 4; // Over so many samples rates are taken.

/** How much a count grew in a second, around each sample; as in `svg.py`. */
export function rates(clock: Float64Array, counts: Float64Array): number[] {
  return Array.from(counts, (count, place) => {
    const before = Math.max(0, place - RATE_SAMPLES);
    const seconds = clock[place] - clock[before];
    return seconds > 0 ? (count - counts[before]) / seconds : 0;
  });
}

/** Who waits at a queue: on the side that takes, and on the one that fills. */
export function sidesOf(queue: Queue): { taking: string; filling: string } {
  return {
    taking: queue.feedsTraining ? "training waits" : "next runner waits",
    filling: queue.runners.length > 0 ? "runner waits" : "filling waits",
  };
}

/** A queue's kind as people say it: "FIFO queue", "random shuffle queue". */
export function kindText(kind: string): string {
  if (kind === "SourceQueue") return "prefetching queue";
  const words = kind.replace(/([a-z])([A-Z])|([A-Z]+)([A-Z][a-z])/g, "$1$3 $2$4").split(" ");
  return words.map((word) => (word === word.toUpperCase() ? word : word.toLowerCase())).join(" ");
}
