// Summaries as a page keeps them: what the frames of `flowbook/widgets/summaries/payload.py` add up to.
//
// A frame says of each of its series from which place on its points replace what was known. So a
// frame that was lost leaves a gap, and one that was made from the beginning closes it.

import { unpacked } from "./packing.js";

export const FORMAT = 1;

export type SummaryKind = "scalar" | "histogram" | "image" | "text";

export interface HistogramValue {
  readonly low: number;
  readonly high: number;
  /** How many values were not finite. */
  readonly lost: number;
  /** Upper limits of buckets, ascending, and how many values lie in each. */
  readonly limits: Float64Array;
  readonly counts: Float64Array;
}

export interface ImageValue {
  readonly width: number;
  readonly height: number;
  /** The contents of a file. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export type TextValue = readonly string[];

/** One tag of one run; equal places in the lists are one point. */
export interface Series<Value = unknown> {
  readonly run: number;
  readonly tag: string;
  readonly kind: SummaryKind;
  /** Where each point stands among all that were given, of which not all are kept. */
  places: number[];
  steps: number[];
  /** In seconds since 1970. */
  times: number[];
  values: Value[];
  /** Grows with every change. */
  version: number;
}

export interface Run {
  readonly label: string;
  readonly id: string;
}

/** Run, tag, kind, where it starts anew, how many places before that are kept (-1: all), points. */
type Row = [number, string, SummaryKind, number, number, number];

interface Header {
  format: number;
  sequence: number;
  runs: [string, string][];
  said: string[];
  series: Row[];
  texts: string[][];
}

export class SummaryStore {
  runs: Run[] = [];
  said: string[] = [];
  /** The latest frame's number. */
  sequence = -1;
  readonly #series = new Map<string, Series>();

  get series(): Iterable<Series> {
    return this.#series.values();
  }

  get isEmpty(): boolean {
    return this.#series.size === 0;
  }

  /** How many points the longest curve was given, of which not all are kept. */
  get longestCurve(): number {
    let longest = 0;
    for (const { kind, places } of this.#series.values()) if (kind === "scalar") longest = Math.max(longest, 1 + (places.at(-1) ?? -1));
    return longest;
  }

  /** When a run began, in seconds since 1970. */
  startOf(run: number): number {
    let first = Infinity;
    for (const series of this.#series.values()) {
      if (series.run === run && series.times.length > 0) first = Math.min(first, series.times[0]);
    }
    return first;
  }

  /** Take in an unpacked frame; true if there is a series that was not known, or is of another kind. */
  apply(buffer: ArrayBuffer): boolean {
    const { header, columns } = unpacked<Header>(buffer);
    if (header.format !== FORMAT) {
      throw new Error(`the summaries have format ${header.format}, this page reads ${FORMAT}: reload it`);
    }
    this.sequence = header.sequence;
    this.runs = header.runs.map(([label, id]) => ({ label, id }));
    this.said = header.said;
    const readers = readersOf(columns as Record<string, Float64Array>, header.texts);
    let isNew = false;
    let keptAt = 0;
    for (const [run, tag, kind, start, kept, count] of header.series) {
      const key = `${run} ${tag}`;
      let series = this.#series.get(key);
      if (series?.kind !== kind) {
        series = { run, tag, kind, places: [], steps: [], times: [], values: [], version: 0 };
        this.#series.set(key, series);
        isNew = true;
      }
      const still = kept < 0 ? null : new Set(columns["kept"].subarray(keptAt, keptAt + kept));
      keptAt += Math.max(kept, 0);
      forget(series, start, still);
      readers[kind](series, count);
      series.version += 1;
    }
    return isNew;
  }
}

function forget(series: Series, start: number, kept: ReadonlySet<number> | null): void {
  let length = series.places.length;
  while (length > 0 && series.places[length - 1] >= start) length -= 1;
  for (const list of [series.places, series.steps, series.times, series.values]) list.length = length;
  if (!kept) return;
  const stays = series.places.map((place) => kept.has(place));
  const only = <T>(list: T[]): T[] => list.filter((_, i) => stays[i]);
  series.places = only(series.places);
  series.steps = only(series.steps);
  series.times = only(series.times);
  series.values = only(series.values);
}

/** For each kind what takes its next points from the columns of a frame. */
function readersOf(
  columns: Readonly<Record<string, Float64Array>>,
  texts: readonly string[][],
): Record<SummaryKind, (series: Series, count: number) => void> {
  const reader = (kind: SummaryKind, valueOf: (i: number) => unknown) => {
    let at = 0;
    return (series: Series, count: number): void => {
      for (const end = at + count; at < end; at++) {
        series.places.push(columns[`${kind}Place`][at]);
        series.steps.push(columns[`${kind}Step`][at]);
        series.times.push(columns[`${kind}Time`][at]);
        series.values.push(valueOf(at));
      }
    };
  };
  let bucket = 0;
  let byte = 0;
  return {
    scalar: reader("scalar", (i) => columns["value"][i]),
    histogram: reader("histogram", (i): HistogramValue => {
      const [from, to] = [bucket, (bucket += columns["buckets"][i])];
      return {
        low: columns["low"][i],
        high: columns["high"][i],
        lost: columns["lost"][i],
        limits: columns["limits"].slice(from, to),
        counts: columns["counts"].slice(from, to),
      };
    }),
    image: reader("image", (i): ImageValue => {
      const [from, to] = [byte, (byte += columns["bytes"][i])];
      // A copy: the frame need not stay for it.
      const bytes = (columns["pixels"] as unknown as Uint8Array<ArrayBuffer>).slice(from, to);
      return { width: columns["width"][i], height: columns["height"][i], bytes };
    }),
    text: reader("text", (i): TextValue => texts[i]),
  };
}
