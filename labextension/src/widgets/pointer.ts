// What a pointer does over the canvas: presses that move, those that do not, and wheels.

const CLICK = 4; // Pixels that a press may move and still be a click.

export interface PointerActions {
  press(): void;
  pan(dx: number, dy: number): void;
  click(x: number, y: number): void;
  doubleClick(x: number, y: number): void;
  /** The pointer is here and nothing is pressed; null: it has left. */
  hover(at: readonly [number, number] | null): void;
  zoom(by: number, x: number, y: number): void;
  /** Whether a wheel is the view's, not the page's. */
  takesWheel(event: WheelEvent): boolean;
}

export function listenToPointer(canvas: HTMLCanvasElement, actions: PointerActions): void {
  let press: { x: number; y: number; moved: boolean } | null = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    press = { x: event.offsetX, y: event.offsetY, moved: false };
    canvas.setPointerCapture(event.pointerId);
    actions.press();
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!press) return actions.hover([event.offsetX, event.offsetY]);
    const [dx, dy] = [event.offsetX - press.x, event.offsetY - press.y];
    if (!press.moved && Math.hypot(dx, dy) < CLICK) return;
    if (!press.moved) actions.hover(null);
    press.moved = true;
    canvas.classList.add("fb-held");
    press.x = event.offsetX;
    press.y = event.offsetY;
    actions.pan(dx, dy);
  });
  const release = (event: PointerEvent): void => {
    canvas.classList.remove("fb-held");
    if (press && !press.moved && event.type === "pointerup") actions.click(event.offsetX, event.offsetY);
    press = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => actions.hover(null));
  canvas.addEventListener("dblclick", (event) => actions.doubleClick(event.offsetX, event.offsetY));
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!actions.takesWheel(event)) return;
      event.preventDefault();
      const unit = event.deltaMode === 1 ? 16 : 1;
      actions.zoom(Math.exp(-event.deltaY * unit * (event.ctrlKey ? 0.008 : 0.0018)), event.offsetX, event.offsetY);
    },
    { passive: false },
  );
}
