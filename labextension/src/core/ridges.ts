// Histograms over time as ridges: each a hill of how its values are distributed, one behind the other.

import { fullHeight } from "./spikes.js";
import { HistogramValue } from "./summaries.js";

export interface Ridges {
  /** What lies on the horizontal axis. */
  readonly low: number;
  readonly high: number;
  /** For each histogram how many of its values lie in each of the bins, which are equally wide. */
  readonly bins: readonly Float64Array[];
  /** The number that is drawn as high as can be; one bin may have more. */
  readonly peak: number;
}

/** Bring histograms, which have buckets of their own, into equal bins. */
export function ridgesOf(histograms: readonly HistogramValue[], count: number): Ridges {
  let [low, high] = [Infinity, -Infinity];
  for (const histogram of histograms) {
    if (histogram.limits.length === 0) continue;
    low = Math.min(low, histogram.low);
    high = Math.max(high, histogram.high);
  }
  if (!(low <= high)) return { low: 0, high: 1, bins: histograms.map(() => new Float64Array(count)), peak: 0 };
  if (low === high) {
    const room = Math.abs(low) * 0.1 || 1;
    [low, high] = [low - room, high + room];
  }
  const bins = histograms.map((histogram) => rebinned(histogram, low, high, count));
  return { low, high, bins, peak: fullHeight(bins) };
}

/** Spread each bucket evenly over the bins that it covers; the sum stays what it was. */
export function rebinned(histogram: HistogramValue, low: number, high: number, count: number): Float64Array {
  const found = new Float64Array(count);
  const width = (high - low) / count;
  const binOf = (value: number): number => Math.min(count - 1, Math.max(0, Math.floor((value - low) / width)));
  let left = histogram.low;
  histogram.limits.forEach((limit, i) => {
    const number = histogram.counts[i];
    // The outermost limits may lie beyond the values.
    const [from, to] = [Math.min(left, histogram.high), Math.min(Math.max(limit, left), histogram.high)];
    left = to;
    if (!(number > 0)) return;
    if (!(to > from)) {
      found[binOf(from)] += number;
      return;
    }
    const [first, last] = [binOf(from), binOf(to)];
    for (let bin = first; bin <= last; bin++) {
      const start = bin === first ? from : low + bin * width;
      const end = bin === last ? to : low + (bin + 1) * width;
      found[bin] += (number * Math.max(0, end - start)) / (to - from);
    }
  });
  return found;
}
