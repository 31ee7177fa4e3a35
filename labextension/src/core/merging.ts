// Curves of several runs over one axis.

export interface Curve {
  readonly x: ArrayLike<number>;
  readonly y: ArrayLike<number>;
}

/** Curves over one ascending axis; where a curve has no point there is no number (undefined). */
export interface Merged {
  readonly x: number[];
  readonly columns: (number | undefined)[][];
}

/** The order in which values ascend; equal ones stay in theirs. Null if they ascend already. */
export function ascending(values: ArrayLike<number>): Int32Array | null {
  let sorted = true;
  for (let i = 1; i < values.length && sorted; i++) sorted = values[i - 1] <= values[i];
  if (sorted) return null;
  return Int32Array.from({ length: values.length }, (_, i) => i).sort((a, b) => values[a] - values[b] || a - b);
}

/** Merge curves whose `x` ascend. Points of different curves at one `x` share a row. */
export function merged(curves: readonly Curve[]): Merged {
  const at = curves.map(() => 0);
  const x: number[] = [];
  const columns: (number | undefined)[][] = curves.map(() => []);
  for (;;) {
    let next = Infinity;
    for (let i = 0; i < curves.length; i++) {
      if (at[i] < curves[i].x.length) next = Math.min(next, curves[i].x[at[i]]);
    }
    if (next === Infinity) return { x, columns };
    x.push(next);
    for (let i = 0; i < curves.length; i++) {
      const has = at[i] < curves[i].x.length && curves[i].x[at[i]] === next;
      columns[i].push(has ? curves[i].y[at[i]++] : undefined);
    }
  }
}
