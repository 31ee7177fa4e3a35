// Numbers and names as people read them.

/** A whole number with its thousands apart. */
export function grouped(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function counted(number: number, noun: string): string {
  return `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function byteSize(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  let size = bytes;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${size >= 100 || unit === 0 ? grouped(Math.round(size)) : size.toFixed(1)} ${units[unit]}`;
}

/** A duration to three digits, such as "31.4 us". */
export function timeSize(seconds: number): string {
  const nanoseconds = Math.round(seconds * 1e9);
  if (nanoseconds < 1000) return `${nanoseconds} ns`;
  let [count, unit] = [nanoseconds / 1000, "us"];
  for (const larger of ["ms", "s"]) if (count >= 999.5) [count, unit] = [count / 1000, larger];
  return `${count.toFixed(count >= 99.95 ? 0 : count >= 9.995 ? 1 : 2)} ${unit}`;
}

/** A part of a whole, such as "63 %"; what is not nothing is not said to be nothing. */
export function percent(share: number): string {
  return share > 0 && share < 0.005 ? "<1 %" : `${Math.round(100 * share)} %`;
}

/** A Python variable with the graph's name beside it; the name alone where there is no variable. */
export function beside(variable: string, name: string): string {
  return variable ? `${variable} (${name})` : name;
}

/** Text on one line: what cannot be shown gets a mark. */
export function shownText(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Noncharacter_Code_Point}]/gu, "\uFFFD");
}

/** A name in pieces: between two it may go on in the next line. */
export function piecesOf(name: string): string[] {
  return name.split(/(?<=[/_.])(?=[^/_.])/u);
}

/** A long text without its middle. */
export function shortened(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const half = Math.max(1, (longest - 1) >> 1);
  return `${text.slice(0, longest - 1 - half)}…${text.slice(text.length - half)}`;
}
