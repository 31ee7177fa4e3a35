// How wide texts are: as in DejaVu Sans, which is wider than most fonts.
//
// Boxes are as large as these widths say and not as those of the font that a page has, so that a
// picture is the same on every machine, live and static.

/** The width of a text at a font size, in pixels. */
export type Measure = (text: string, size: number) => number;

// In hundredths of the font size, from the space to the tilde.
const ASCII = [
  32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 53,
  100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50,
  50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84,
];
const OTHER = 66; // Of other letters of alphabets,
const WIDE = 100; // and of everything beyond: signs, syllables, pictures.
const LAST_ALPHABET = 0x1100;

/** About how wide a text is, in a regular weight. */
export const textWidth: Measure = (text, size) => {
  let hundredths = 0;
  for (const letter of text) {
    const code = letter.codePointAt(0)!;
    hundredths += ASCII[code - 32] ?? (code < LAST_ALPHABET ? OTHER : WIDE);
  }
  return (hundredths * size) / 100;
};
