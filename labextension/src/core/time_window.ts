// Which part of a trace is seen: from a step to a nanosecond.

export const SHORTEST = 20; // Nanoseconds that are seen at least.

export class TimeWindow {
  from = 0;
  span = 1;
  #end = 1;
  #whole = false;

  /** All of a trace; with a little room after it. */
  fit(end: number): void {
    this.#end = Math.max(end, SHORTEST);
    this.show(0, this.#end);
    this.#whole = true;
  }

  /** Show what lies between two moments, with a little room around it. */
  show(from: number, to: number): void {
    const room = (to - from) * 0.01;
    this.from = from - room;
    this.span = to - from + 2 * room;
    this.#whole = false;
    this.#hold();
  }

  /** Show `by` times as fine what is now at a part of the width, which stays there. */
  zoom(by: number, part: number): void {
    const at = this.from + this.span * part;
    this.span = Math.min(Math.max(this.span / by, SHORTEST), this.#end * 1.02);
    this.from = at - this.span * part;
    this.#whole = this.span >= this.#end;
    this.#hold();
  }

  /** Move by a part of the width. */
  pan(part: number): void {
    this.from += this.span * part;
    this.#hold();
  }

  centre(moment: number): void {
    this.from = moment - this.span / 2;
    this.#hold();
  }

  /** Have something in view: where it is, if it is, and as fine as it has to be to be seen. */
  bringIn(from: number, to: number): void {
    const length = to - from;
    if (length > this.span * 0.9) this.show(from - length * 0.2, to + length * 0.2);
    else if (length < this.span / 200) {
      this.span = Math.max(length * 40, SHORTEST);
      this.#whole = false;
      this.centre((from + to) / 2);
    } else if (from < this.from || to > this.from + this.span) this.centre((from + to) / 2);
  }

  /** Whether all of the trace is meant; a step that took nearly all of its time is not all. */
  get whole(): boolean {
    return this.#whole;
  }

  #hold(): void {
    const room = this.#end * 0.01;
    this.span = Math.min(Math.max(this.span, SHORTEST), this.#end + 2 * room);
    this.from = Math.min(Math.max(this.from, -room), this.#end + room - this.span);
  }
}

/** Round moments between two, at most so many, and what they are called: all in one unit. */
export function timeTicks(from: number, to: number, most: number): { at: number; text: string }[] {
  const rough = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-9)));
  const step = Math.max(1, power * ([1, 2, 5].find((part) => part * power >= rough) ?? 10));
  const largest = Math.max(Math.abs(from), Math.abs(to));
  const [size, unit] = largest >= 1e9 ? [1e9, "s"] : largest >= 1e6 ? [1e6, "ms"] : largest >= 1e3 ? [1e3, "us"] : [1, "ns"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  const found: { at: number; text: string }[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to; i++) {
    const text = ((i * step) / size).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    found.push({ at: i * step, text: i === 0 ? "0" : `${text} ${unit}` });
  }
  return found;
}
