// The words beside the pointer.

import { element } from "./dom.js";

export class Tip {
  readonly root = element("div", { class: "fb-tip", hidden: true });

  hide(): void {
    this.root.hidden = true;
  }

  /** Show words beside a point, inside what they lie over. */
  show(text: string, x: number, y: number): void {
    const around = this.root.parentElement!;
    this.root.hidden = false;
    this.root.textContent = text;
    const room = around.clientWidth - this.root.offsetWidth - 8;
    this.root.style.left = `${Math.max(4, Math.min(room, x + 14))}px`;
    const below = y + 18 + this.root.offsetHeight < around.clientHeight;
    this.root.style.top = `${below ? y + 18 : y - this.root.offsetHeight - 10}px`;
  }
}
