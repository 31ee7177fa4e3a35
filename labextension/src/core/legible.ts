// What of a picture can be read at a scale. What would be smaller is noise: names are drawn larger
// than the picture's scale then, and shortened; everything else is left out.

import { DETAIL_SIZE, LABEL_SIZE, TITLE_SIZE } from "./faces.js";
import { Measure } from "./letters.js";
import { Room } from "./rooms.js";
import { Box } from "./scene.js";
import { shortened } from "./words.js";

// Sizes on the screen, in pixels.
export const SMALLEST_NAME = 8.5;
const SMALLEST_WHOLE = 7;
const SMALLEST_DETAIL = 6.4;
const FEWEST_LETTERS = 2;
const FEWEST_WITH_END = 5; // Of letters, for the end of the name to be among them.
const SMALLEST_HEADS = 0.3; // The scale below which heads of arrows are specks,
const SMALLEST_SHEETS = 0.25; // and a second sheet behind a box a blur.

/** What is drawn at a scale. */
export class Legible {
  /** Whether names are as large as the picture has them: boxes are made for that. */
  readonly names: boolean;
  readonly details: boolean;
  readonly labels: boolean;
  readonly heads: boolean;
  readonly sheets: boolean;

  constructor(readonly scale: number) {
    this.names = scale >= SMALLEST_NAME / TITLE_SIZE;
    this.details = isRead(DETAIL_SIZE * scale);
    this.labels = isRead(LABEL_SIZE * scale);
    this.heads = scale >= SMALLEST_HEADS;
    this.sheets = scale > SMALLEST_SHEETS;
  }
}

/** Whether a text of so many pixels can be read. */
export function isRead(pixels: number): boolean {
  return pixels >= SMALLEST_DETAIL;
}

/** A name where the picture's scale is too small for it, and how large it is in the picture. */
export interface Beyond {
  readonly title: string;
  readonly size: number;
  readonly x: number;
  readonly y: number;
  /** Whether it is wider than its box, and so lies on lines. */
  readonly isOnLines: boolean;
}

/** The name of a small box, as large as can be read: it may reach beyond the box where there is room; null without any. */
export function nameBeyond({ x, y, width, height, face }: Box, room: Room, { scale, details }: Legible, measure: Measure): Beyond | null {
  const detailed = details && face.detail !== "";
  const high = detailed ? height / 2 : height + 2 * Math.min(room.above, room.below);
  const largest = Math.min(SMALLEST_NAME / scale, high);
  if (!isRead(largest * scale)) return null;
  const wide = width + 2 * Math.min(room.left, room.right) - 2 / scale;
  // Rather a little smaller than shortened; widths of letters are not quite in proportion to sizes.
  const whole = (0.96 * largest * wide) / measure(face.title, largest);
  const size = Math.min(largest, Math.max(whole, SMALLEST_WHOLE / scale));
  const title = fitting(face.title, wide, (text) => measure(text, size));
  return {
    title,
    size,
    x: x + width / 2,
    y: detailed ? y + height / 2 - 2.5 : y + height / 2 + 0.34 * size,
    isOnLines: measure(title, size) > width - 4,
  };
}

/** A text, shortened to a width; empty where nothing of it would be left. */
export function fitting(text: string, width: number, measure: (text: string) => number): string {
  const whole = measure(text);
  if (whole <= width) return text;
  const letters = Math.floor((text.length * width) / whole) - 1;
  if (letters < FEWEST_LETTERS) return "";
  return letters < FEWEST_WITH_END ? `${text.slice(0, letters)}…` : shortened(text, letters);
}
