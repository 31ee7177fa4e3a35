// Smoothing of curves: an exponential moving average without the bias of its beginning.

/** What smooths curves of so many points that they are bands: until a person chooses. */
const [MANY, BY] = [10_000, 0.99];

/** How much curves are smoothed that nobody has chosen it for, by the points of the longest. */
export function usualSmoothing(points: number): number {
  return points < MANY ? 0 : BY;
}

/**
 * Smooth values as TensorBoard does.
 *
 * @param values of a curve, in order; what is not finite stays as it is and counts for nothing.
 * @param weight how much of what came before counts, from 0 to less than 1.
 */
export function smoothed(values: ArrayLike<number>, weight: number): Float64Array {
  const found = new Float64Array(values.length);
  let average = 0;
  let rest = 1; // How much of the average its beginning, which is zero, still is.
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (!Number.isFinite(value)) {
      found[i] = value;
      continue;
    }
    average = average * weight + (1 - weight) * value;
    rest *= weight;
    found[i] = average / (1 - rest);
  }
  return found;
}
