// Which part of the picture is seen, and how large; it glides where it is sent.

import { LEGIBLE } from "../core/arranging.js";
import { Box, Scene } from "../core/scene.js";
import { View } from "./canvas.js";

const [SMALLEST, LARGEST] = [0.02, 4];
const MARGIN = 26;
const BASE = 36; // What the words at the bottom take.
const GLIDE = 180; // Milliseconds.
const [LOWEST, HIGHEST] = [320, 640]; // Of the view, when it first takes the height that it needs.

/** The room that there is: of the canvas, less what lies over it at the top and at the right. */
export interface Room {
  readonly width: number;
  readonly height: number;
  readonly top: number;
  /** How wide the part is that nothing covers. */
  readonly free: number;
}

export class Viewport {
  #view: View = { x: 0, y: 0, scale: 1 };
  #glide: { from: View; to: View; start: number } | null = null;
  /** Whether a person has moved it. */
  touched = false;

  /**
   * @param room: the room that there is.
   * @param natural: the scale at which the picture's names are as large as the page's text.
   * @param redraw: draws it anew.
   */
  constructor(
    readonly room: () => Room,
    readonly natural: () => number,
    readonly redraw: () => void,
  ) {}

  get view(): View {
    return this.#view;
  }

  /** Where a point of the canvas is in the picture. */
  at(px: number, py: number): [number, number] {
    return [this.#view.x + px / this.#view.scale, this.#view.y + py / this.#view.scale];
  }

  /** Go on gliding; whether there is further to go. */
  step(): boolean {
    if (!this.#glide) return false;
    const { from, to, start } = this.#glide;
    const part = Math.min(1, (performance.now() - start) / GLIDE);
    const eased = 1 - (1 - part) ** 3;
    const mix = (a: number, b: number): number => a + (b - a) * eased;
    this.#view = { scale: from.scale * (to.scale / from.scale) ** eased, x: mix(from.x, to.x), y: mix(from.y, to.y) };
    if (part < 1) return true;
    this.#view = { ...to };
    this.#glide = null;
    return false;
  }

  pan(dx: number, dy: number): void {
    this.touched = true;
    this.#glide = null;
    this.#view.x -= dx / this.#view.scale;
    this.#view.y -= dy / this.#view.scale;
    this.redraw();
  }

  zoom(by: number, x: number, y: number): void {
    this.touched = true;
    this.#glide = null;
    const scale = Math.min(LARGEST, Math.max(SMALLEST, this.#view.scale * by));
    this.#view.x += x / this.#view.scale - x / scale;
    this.#view.y += y / this.#view.scale - y / scale;
    this.#view.scale = scale;
    this.redraw();
  }

  fit(scene: Scene): void {
    this.touched = false;
    this.#glideTo(this.#whole(scene));
  }

  /** Show all of it at once, unless a person has chosen what to see. */
  follow(scene: Scene): void {
    if (!this.touched) this.#view = this.#whole(scene);
  }

  /** Keep a box where it was on the screen, though the picture around it has changed. */
  hold(old: Box, box: Box): void {
    this.#glide = null;
    this.#view.x += box.x - old.x + (box.opened || old.opened ? (box.width - old.width) / 2 : 0);
    this.#view.y += box.y - old.y;
    if (box.opened) this.bringIn(box);
  }

  /** How high the view is to be: no more than the picture needs, and no less than reads well. */
  heightFor(scene: Scene): number {
    const { width, top } = this.room();
    const scale = Math.min(this.natural(), Math.max(40, width - 2 * MARGIN) / scene.width);
    return Math.round(Math.min(HIGHEST, Math.max(LOWEST, scene.height * Math.max(scale, LEGIBLE) + top + BASE)));
  }

  /** Move a box out from under what lies over the right of the canvas, if there is room for it. */
  uncover(box: Box): void {
    const { x, y, scale } = this.#view;
    const { free } = this.room();
    const right = (box.x + box.width - x) * scale;
    if (right <= free || box.width * scale > free - 2 * MARGIN) return;
    this.#glideTo({ scale, x: x + (right - free + MARGIN) / scale, y });
  }

  /** Move as little as brings a box into view. */
  bringIn(box: Box): void {
    const { x, y, scale } = this.#view;
    const { free: width, height, top: above } = this.room();
    const [left, top] = [(box.x - x) * scale, (box.y - y) * scale];
    const [right, bottom] = [left + box.width * scale, top + box.height * scale];
    if (left >= 0 && right <= width && top >= above && bottom <= height) return;
    if (box.width * scale > width - 2 * MARGIN || box.height * scale > height - above - MARGIN) {
      // It is larger than the view: show all of it, or as much as can be read.
      const fitting = Math.min((width - 2 * MARGIN) / box.width, (height - above - MARGIN) / box.height);
      const goal = Math.min(scale, Math.max(fitting, 0.3));
      const isTall = box.height * goal > height - above;
      this.#glideTo({
        scale: goal,
        x: box.x + box.width / 2 - width / goal / 2,
        y: isTall ? box.y - above / goal : box.y + box.height / 2 - (height / goal + above / goal) / 2,
      });
      return;
    }
    const dx = left < MARGIN ? left - MARGIN : right > width - MARGIN ? right - width + MARGIN : 0;
    const dy = top < above ? top - above : bottom > height - MARGIN ? bottom - height + MARGIN : 0;
    this.#glideTo({ scale, x: x + dx / scale, y: y + dy / scale });
  }

  centre(box: Box): void {
    this.touched = true;
    const { free, height } = this.room();
    const scale = Math.max(0.8, Math.min(1.2 * this.natural(), this.#view.scale));
    this.#glideTo({
      scale,
      x: box.x + box.width / 2 - free / 2 / scale,
      y: box.y + Math.min(box.height, height / scale) / 2 - height / 2 / scale,
    });
  }

  #whole(scene: Scene): View {
    const { free, height, top } = this.room();
    const roomX = Math.max(40, free - 2 * MARGIN);
    const roomY = Math.max(40, height - top - BASE);
    const scale = Math.max(SMALLEST, Math.min(1.15 * this.natural(), roomX / scene.width, roomY / scene.height));
    return { scale, x: scene.width / 2 - free / 2 / scale, y: scene.height / 2 - (top + roomY / 2) / scale };
  }

  #glideTo(to: View): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.#view = to;
    else this.#glide = { from: { ...this.#view }, to, start: performance.now() };
    this.redraw();
  }
}
