// Axes: where points lie on them, and their numbers as people read them.

export type XAxis = "step" | "relative" | "time";

/** Where points lie on the horizontal axis. */
export function positions(axis: XAxis, steps: readonly number[], times: readonly number[], start: number): readonly number[] {
  if (axis === "step") return steps;
  return axis === "time" ? times : times.map((time) => time - start);
}

/** A number in as few characters as tell it: "0.0312", "1.5e-7", "12,000", "NaN", "∞". */
export function numberText(value: number, digits = 4): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  let text: string;
  if (size >= 1e6 || size < 1e-3) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
    text = `${trimmed(mantissa)}e${Number(exponent)}`;
  } else {
    const whole = Math.floor(Math.log10(size)) + 1;
    const fixed = Number(value.toPrecision(Math.max(digits, whole)));
    text = fixed.toLocaleString("en-US", { maximumFractionDigits: Math.max(0, digits - Math.max(whole, -1)) });
  }
  return text.replace("-", text.startsWith("-") ? "−" : "-");
}

/** The numbers of an axis: all in one notation, with the digits that tell neighbours apart. */
export function tickTexts(ticks: readonly (number | null)[]): string[] {
  const known = ticks.filter((tick): tick is number => tick !== null);
  const largest = Math.max(...known.map(Math.abs), 0);
  const gaps = known.slice(1).map((tick, i) => Math.abs(tick - known[i])).filter((gap) => gap > 0);
  const gap = Math.min(...gaps, Infinity);
  const isScientific = largest > 0 && (largest >= 1e6 || largest < 1e-3 || (largest < 0.01 && gap < 1e-3));
  const [top, step] = [Math.floor(Math.log10(largest || 1)), gap === Infinity ? -3 : Math.floor(Math.log10(gap) + 1e-9)];
  return ticks.map((tick) => {
    if (tick === null) return "";
    if (Math.abs(tick) < gap / 1e6) return "0";
    if (isScientific) {
      const digits = Math.min(12, Math.max(0, Math.floor(Math.log10(Math.abs(tick)) + 1e-9) - step + 1));
      const [mantissa, exponent] = tick.toExponential(digits).split("e");
      return minus(`${trimmed(mantissa)}e${Number(exponent)}`);
    }
    const digits = Math.min(12, Math.max(0, -step + (top > 3 ? 0 : 1)));
    return minus(Number(tick.toFixed(digits)).toLocaleString("en-US", { maximumFractionDigits: digits }));
  });
}

/** Steps: "200", "1.5k", "2M". */
export function stepText(step: number): string {
  const size = Math.abs(step);
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    if (size >= unit) return minus(`${Number((step / unit).toPrecision(6))}${letter}`);
  }
  return minus(String(Number(step.toPrecision(6))));
}

/** A time that has passed: "350 ms", "4.2 s", "3m 20s", "2h 05m", "3d 4h". */
export function durationText(seconds: number): string {
  const size = Math.abs(seconds);
  const sign = seconds < 0 ? "−" : "";
  if (size === 0) return "0 s";
  if (size < 1) return `${sign}${Number((size * 1000).toPrecision(3))} ms`;
  if (size < 59.95) return `${sign}${Number(size.toPrecision(3))} s`;
  const pair = (larger: number, a: string, smaller: number, b: string): string => {
    const total = Math.round(size / smaller);
    const [whole, rest] = [Math.floor((total * smaller) / larger), total % (larger / smaller)];
    return `${sign}${whole}${a}${rest ? ` ${String(rest).padStart(2, "0")}${b}` : ""}`;
  };
  if (size < 3599.5) return pair(60, "m", 1, "s");
  return size < 86_370 ? pair(3600, "h", 60, "m") : pair(86_400, "d", 3600, "h");
}

/** The day and the time of a point. */
export function momentText(seconds: number): string {
  const day = new Date(seconds * 1000);
  return Number.isNaN(day.getTime()) ? "" : day.toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
}

/** The range of an axis with room around what lies on it; of a logarithmic one if `log`. */
export function padded(low: number, high: number, log: boolean): [number, number] {
  if (!(low <= high)) return log ? [0.1, 10] : [0, 1];
  if (log) {
    const [from, to] = [Math.log10(low), Math.log10(high)];
    const room = Math.max((to - from) * 0.06, 0.04);
    return [10 ** (from - room), 10 ** (to + room)];
  }
  if (low === high) {
    const room = Math.abs(low) * 0.1 || 1;
    return [low - room, high + room];
  }
  const room = (high - low) * 0.06;
  return [low - room, high + room];
}

/** Round numbers on a logarithmic axis: powers of ten, where there are few of them also 2 and 5 times these, or those of a plain axis. */
export function logTicks(low: number, high: number, most: number): number[] {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const parts = last - first > 3 ? [1] : [1, 2, 5];
  const found: number[] = [];
  for (let power = first; power <= last; power++) {
    for (const part of parts) found.push(Number(`${part}e${power}`));
  }
  const inside = found.filter((tick) => tick >= low && tick <= high);
  if (inside.length < 3) return plainTicks(low, high, most);
  const every = Math.ceil(inside.length / most);
  return inside.filter((_, i) => i % every === 0);
}

/** The numbers of a logarithmic axis. */
export function logTickTexts(ticks: readonly number[]): string[] {
  // Neighbours within a power of ten may differ in late digits only.
  return ticks[ticks.length - 1] < 10 * ticks[0] ? tickTexts(ticks) : ticks.map((tick) => numberText(tick));
}

function plainTicks(low: number, high: number, most: number): number[] {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((part) => part * power >= rough) ?? 10);
  const [from, to] = [Math.ceil(low / step - 1e-6), Math.floor(high / step + 1e-6)];
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => Number(((from + i) * step).toPrecision(12)));
}

function trimmed(mantissa: string): string {
  return mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
}

function minus(text: string): string {
  return text.replace(/^-/, "−");
}
