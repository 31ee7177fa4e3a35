// Colours of runs: told apart by the colour-blind too (after Okabe and Ito), one for each number.

const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc4d97", "#c98500", "#3fa0dc", "#4b4f58"];
const DARK = ["#4aa8e8", "#ff8a47", "#2cc79b", "#f08fc4", "#f2b84b", "#9ad4f7", "#b4bac4"];

/** Dashes tell apart those that have to share a colour. */
const DASHES = [[], [7, 4], [2, 3]];

export interface RunPaint {
  readonly colour: string;
  readonly dash: readonly number[];
}

/**
 * The paint of one of several curves that a run has in a chart: those of a run alone have colours of
 * their own; of several runs each has its colour, and dashes tell its curves apart.
 */
export function curvePaint(run: number, place: number, isAlone: boolean, dark: boolean): RunPaint {
  if (isAlone) return runPaint(run + place, dark);
  const { colour, dash } = runPaint(run, dark);
  return { colour, dash: place === 0 ? dash : DASHES[1 + ((place - 1) % (DASHES.length - 1))] };
}

export function runPaint(run: number, dark: boolean): RunPaint {
  const colours = dark ? DARK : LIGHT;
  return {
    colour: colours[run % colours.length],
    dash: DASHES[Math.floor(run / colours.length) % DASHES.length],
  };
}
