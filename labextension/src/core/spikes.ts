// One bin that drowns all others, such as the zeros of rectified values: it is cut, so that the
// others are seen.

/** So many times as high as every other bin is too high, */
const DROWNS = 4;
/** and is cut to so many times. */
const CUT = 1.5;

/** The count that fills the height of a picture of histograms; what is higher is cut there. */
export function fullHeight(histograms: readonly ArrayLike<number>[]): number {
  let [greatest, others] = [0, 0];
  for (const counts of histograms) {
    let [first, second] = [0, 0];
    for (let i = 0; i < counts.length; i++) {
      if (counts[i] > first) [first, second] = [counts[i], first];
      else if (counts[i] > second) second = counts[i];
    }
    greatest = Math.max(greatest, first);
    others = Math.max(others, second);
  }
  return others > 0 && greatest > DROWNS * others ? CUT * others : greatest;
}
