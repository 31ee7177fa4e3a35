// What lies at a point of the picture.

import { Box, Scene } from "./scene.js";

/** The innermost box there. */
export function boxAt(scene: Scene, x: number, y: number): Box | null {
  const holds = (box: Box): boolean => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height;
  for (let i = scene.sheets.length - 1; i >= 0; i--) {
    const sheet = scene.sheets[i];
    const closed = sheet.closed.find(holds);
    if (closed) return closed;
    if (sheet.box && holds(sheet.box)) return sheet.box;
  }
  return null;
}
