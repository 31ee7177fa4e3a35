// A graph in a page: what is opened, selected and in view, and what follows from each press and key.
//
// Everything happens here, in the page: the kernel may be busy or gone.

import { cardOf, neighbours } from "../core/card.js";
import { templateHues } from "../core/colours.js";
import { isOpenable } from "../core/faces.js";
import { Hierarchy } from "../core/hierarchy.js";
import { Layout } from "../core/layout.js";
import { inflate } from "../core/packing.js";
import { GraphData, Kind, Mark, decode } from "../core/payload.js";
import { Box, Choices, EdgeCache, Prepared, Scene, compose, isAside, prepare } from "../core/scene.js";
import { Search } from "../core/search.js";
import { withSeries } from "../core/series.js";
import { sceneSvg } from "../core/svg.js";
import { counted, shortened, shownText } from "../core/words.js";
import { AriaTree } from "./aria_tree.js";
import { Painter, View } from "./canvas.js";
import { CardAction, cardPanel } from "./card_panel.js";
import { element } from "./dom.js";
import { Cancelled, LayoutClient } from "./layout_client.js";
import { SearchBox } from "./search_box.js";
import { STYLES } from "./styles.js";
import { Theme, onThemeChange, readTheme } from "./theme.js";
import { toolbar } from "./toolbar.js";

const [SMALLEST, LARGEST] = [0.02, 4];
const MARGIN = 26;
const BASE = 36; // What the words at the bottom take.
const CLICK = 4; // Pixels that a press may move and still be a click.
const GLIDE = 180; // Milliseconds.
const [LOWEST, HIGHEST] = [240, 560]; // Of the view, when it first takes the height that it needs.

export class GraphView {
  readonly root: HTMLElement;
  readonly #canvas = element("canvas", { "aria-hidden": "true" });
  readonly #tip = element("div", { class: "fb-tip", hidden: true });
  readonly #status = element("div", { class: "fb-status", role: "status" });
  readonly #painter: Painter;
  readonly #layouts = new LayoutClient();
  readonly #aria: AriaTree;
  readonly #searchBox: SearchBox;
  readonly #bar: HTMLElement;
  readonly #card: ReturnType<typeof cardPanel>;
  readonly #ends: (() => void)[] = [];
  #measureContext = document.createElement("canvas").getContext("2d")!;
  #widths = new Map<string, number>();

  #data: GraphData | null = null;
  #tree: Hierarchy | null = null;
  #edges: EdgeCache | null = null;
  #search: Search | null = null;
  #hues: ReadonlyMap<number, number> = new Map();
  #scene: Scene | null = null;
  #theme: Theme;
  #opened = new Set<number>();
  #asideByHand = new Map<number, boolean>();
  #controls = false;
  #sideways = false;
  #series = false;
  #selected: number | null = null;
  #hovered: number | null = null;
  #before: ReadonlySet<number> = new Set();
  #after: ReadonlySet<number> = new Set();
  #view: View = { x: 0, y: 0, scale: 1 };
  #touched = false; // Whether a person has moved the view.
  #turn = 0;
  #frame = 0;
  #glide: { from: View; to: View; start: number } | null = null;

  constructor(place: HTMLElement) {
    this.#card = cardPanel((node) => void this.reveal(node), () => this.select(null));
    this.#searchBox = new SearchBox(() => this.#search, (node) => this.#say(node), (node) => void this.reveal(node));
    this.#aria = new AriaTree(
      {
        select: (node) => this.select(node, true),
        open: (node) => void this.open(node),
        close: (node) => void this.close(node),
        key: (event) => this.#key(event),
      },
      (node) => this.#say(node),
    );
    this.#bar = toolbar(
      {
        fit: () => this.fit(),
        zoom: (by) => this.zoom(by),
        collapseAll: () => void this.collapseAll(),
        setControls: (on) => void this.#change(() => (this.#controls = on)),
        setSideways: (on) => void this.#change(() => (this.#sideways = on), true),
        setSeries: (on) => void this.#setSeries(on),
        exportSvg: () => this.#saveSvg(),
      },
      this.#searchBox.root,
    );
    this.root = element("div", { class: "fb-graph", role: "group", "aria-label": "graph" });
    this.root.append(element("style", {}, STYLES), this.#canvas, this.#aria.root, this.#bar, this.#card.root, this.#tip, this.#status);
    place.append(this.root);
    this.#painter = new Painter(this.#canvas);
    this.#theme = readTheme(this.root);
    this.#layouts.warm();
    this.#listen();
  }

  /** Show a graph; or a later state of the same, with what was opened and selected as it was. */
  async load(packed: Uint8Array<ArrayBuffer>): Promise<void> {
    const turn = ++this.#turn;
    const data = decode(await inflate(packed));
    if (turn !== this.#turn) return;
    this.#data = data;
    this.#grow(this.#series ? withSeries(data) : new Hierarchy(data));
    await this.#relayout(null);
  }

  dispose(): void {
    this.#turn += 1;
    cancelAnimationFrame(this.#frame);
    for (const end of this.#ends) end();
    this.#layouts.close();
    this.root.remove();
  }

  // What a person does

  select(node: number | null, follow = false): void {
    const tree = this.#tree;
    if (!tree || !this.#scene) return;
    this.#selected = node;
    this.#relate();
    if (node === null) this.#card.show(null, []);
    else this.#card.show(cardOf(tree, node), this.#actionsOf(node));
    this.#aria.update(tree, this.#opened, node);
    const box = node === null ? undefined : this.#scene.boxes.get(node);
    if (follow && box) this.#bringIntoView(box);
    this.#redraw();
  }

  async open(node: number): Promise<void> {
    if (!this.#tree || !isOpenable(this.#tree, node)) return;
    this.#opened.add(node);
    await this.#relayout(node);
  }

  async close(node: number): Promise<void> {
    const tree = this.#tree;
    if (!tree || !this.#opened.delete(node)) return;
    if (this.#selected !== null && this.#selected !== node && tree.around(this.#selected).includes(node)) this.select(node);
    await this.#relayout(node);
  }

  async toggle(node: number): Promise<void> {
    await (this.#opened.has(node) ? this.close(node) : this.open(node));
  }

  async collapseAll(): Promise<void> {
    this.#opened.clear();
    if (this.#selected !== null && this.#tree) this.select(this.#tree.shown(this.#selected, this.#opened));
    await this.#relayout(null);
    this.fit();
  }

  /** Open what lies around a node, select it, and bring it into view. */
  async reveal(node: number): Promise<void> {
    const tree = this.#tree;
    if (!tree) return;
    const around = tree.around(node);
    const fresh = around.filter((scope) => !this.#opened.has(scope));
    for (const scope of fresh) this.#opened.add(scope);
    if (fresh.length > 0) await this.#relayout(null);
    const box = this.#scene?.boxes.get(node);
    this.select(node);
    if (box) this.#centre(box);
  }

  fit(): void {
    if (!this.#scene) return;
    this.#touched = false;
    this.#glideTo(this.#whole());
  }

  zoom(by: number, x = this.#canvas.clientWidth / 2, y = this.#canvas.clientHeight / 2): void {
    this.#touched = true;
    this.#glide = null;
    const scale = Math.min(LARGEST, Math.max(SMALLEST, this.#view.scale * by));
    this.#view.x += x / this.#view.scale - x / scale;
    this.#view.y += y / this.#view.scale - y / scale;
    this.#view.scale = scale;
    this.#redraw();
  }

  // How the picture comes about

  #grow(tree: Hierarchy): void {
    const before = this.#tree;
    const again = (nodes: Iterable<number>): number[] =>
      before ? [...nodes].flatMap((node) => tree.find(before.key(node)) ?? []) : [];
    const opened = again(this.#opened);
    const selected = again(this.#selected === null ? [] : [this.#selected]);
    const aside = new Map<number, boolean>();
    for (const [node, on] of this.#asideByHand) for (const found of again([node])) aside.set(found, on);
    this.#tree = tree;
    this.#edges = new EdgeCache(tree);
    this.#search = new Search(tree);
    this.#hues = templateHues(tree);
    this.#painter.forgetPaints();
    this.#opened = new Set(opened);
    this.#asideByHand = aside;
    this.#selected = selected[0] ?? null;
    this.#hovered = null;
    if (!before) this.#openFirst(tree);
    this.#status.textContent = this.#summary(tree);
  }

  /** One scope alone says nothing: show what is in it. */
  #openFirst(tree: Hierarchy): void {
    let members = tree.children(tree.root);
    while (members.length === 1 && isOpenable(tree, members[0])) {
      this.#opened.add(members[0]);
      members = tree.children(members[0]);
    }
  }

  get #choices(): Choices {
    return { opened: this.#opened, aside: this.#asideByHand, controls: this.#controls, sideways: this.#sideways };
  }

  /** Lay out what is opened, the inner scopes first; keep `anchor` where it is on the screen. */
  async #relayout(anchor: number | null): Promise<void> {
    const tree = this.#tree!;
    const cache = this.#edges!;
    const turn = ++this.#turn;
    this.#layouts.cancel();
    const prepared = new Map<number, Prepared>();
    const layouts = new Map<number, Layout>();
    const arrange = async (scope: number): Promise<void> => {
      const inner = [...tree.children(scope)].filter((child) => this.#opened.has(child));
      await Promise.all(inner.map(arrange));
      const ready = prepare(cache, scope, this.#choices, this.#measure, layouts);
      prepared.set(scope, ready);
      layouts.set(scope, await this.#layouts.ask(ready.request));
    };
    try {
      await arrange(tree.root);
    } catch (error) {
      if (error instanceof Cancelled || turn !== this.#turn) return;
      this.#status.textContent = `The layout failed: ${String(error)}`;
      throw error;
    }
    if (turn !== this.#turn) return;
    const first = this.#scene === null;
    const old = anchor === null ? undefined : this.#scene?.boxes.get(anchor);
    this.#scene = compose(tree, prepared, layouts, this.#choices);
    this.#relate();
    this.#aria.update(tree, this.#opened, this.#selected);
    if (this.#selected !== null) this.#card.show(cardOf(tree, this.#selected), this.#actionsOf(this.#selected));
    if (first) this.#takeHeight();
    const box = anchor === null ? undefined : this.#scene.boxes.get(anchor);
    if (old && box) {
      this.#glide = null;
      this.#view.x += box.x - old.x + (box.opened || old.opened ? (box.width - old.width) / 2 : 0);
      this.#view.y += box.y - old.y;
      if (box.opened) this.#bringIntoView(box);
    } else if (!this.#touched) this.#view = this.#whole();
    this.#draw();
    this.root.dataset["drawn"] = String(performance.timeOrigin + performance.now());
  }

  async #change(set: () => void, refit = false): Promise<void> {
    set();
    if (!this.#tree) return;
    if (refit) this.#touched = false;
    await this.#relayout(null);
  }

  async #setSeries(on: boolean): Promise<void> {
    this.#series = on;
    if (!this.#data) return;
    this.#grow(on ? withSeries(this.#data) : new Hierarchy(this.#data));
    this.#touched = false;
    await this.#relayout(null);
  }

  readonly #measure = (text: string, size: number): number => {
    const key = `${size} ${text}`;
    let width = this.#widths.get(key);
    if (width === undefined) {
      this.#measureContext.font = `${size > 12 ? "500 " : ""}${size}px ${this.#theme.font}`;
      width = this.#measureContext.measureText(text).width;
      if (this.#widths.size > 20_000) this.#widths.clear();
      this.#widths.set(key, width);
    }
    return width;
  };

  #relate(): void {
    const tree = this.#tree!;
    this.#before = new Set();
    this.#after = new Set();
    if (this.#selected === null) return;
    const { before, after } = neighbours(tree, this.#selected);
    const shown = (nodes: Set<number>): Set<number> => new Set([...nodes].map((node) => tree.shown(node, this.#opened)));
    this.#before = shown(before);
    this.#after = shown(after);
  }

  #actionsOf(node: number): CardAction[] {
    const tree = this.#tree!;
    const actions: CardAction[] = [];
    if (isOpenable(tree, node)) {
      actions.push({ label: this.#opened.has(node) ? "Collapse" : "Expand", press: () => void this.toggle(node) });
    }
    const aside = isAside(tree, this.#choices, node);
    actions.push({
      label: aside ? "Bring back" : "Set aside",
      press: () => void this.#change(() => this.#asideByHand.set(node, !aside)),
    });
    if (tree.isScope(node) && (tree.alike.get(tree.template[node]) ?? 0) > 1) {
      actions.push({ label: "Next alike", press: () => void this.#nextAlike(node) });
    }
    return actions;
  }

  async #nextAlike(node: number): Promise<void> {
    const tree = this.#tree!;
    for (let step = 1; step < tree.size; step++) {
      const other = ((node + step - tree.root) % (tree.size - tree.root)) + tree.root;
      if (other !== tree.root && tree.template[other] === tree.template[node]) return this.reveal(other);
    }
  }

  // Where the view is

  #whole(): View {
    const { width, height } = this.#scene!;
    const roomX = Math.max(40, this.#canvas.clientWidth - 2 * MARGIN);
    const roomY = Math.max(40, this.#canvas.clientHeight - this.#top() - BASE);
    const scale = Math.max(SMALLEST, Math.min(1.15, roomX / width, roomY / height));
    return {
      scale,
      x: width / 2 - this.#canvas.clientWidth / 2 / scale,
      y: height / 2 - (this.#top() + roomY / 2) / scale,
    };
  }

  /** Take no more of the page than the picture needs, and no less than reads well. */
  #takeHeight(): void {
    const { width, height } = this.#scene!;
    const scale = Math.min(1, Math.max(40, this.#canvas.clientWidth - 2 * MARGIN) / width);
    const wanted = Math.min(HIGHEST, Math.max(LOWEST, height * Math.max(scale, 0.55) + this.#top() + BASE));
    this.root.style.height = `${Math.round(wanted)}px`;
    this.#painter.resize();
  }

  /** What the buttons take at the top. */
  #top(): number {
    return this.#bar.offsetHeight + 22;
  }

  /** How wide the part of the view is that the card leaves free. */
  #free(): number {
    const card = this.#card.root;
    return Math.max(160, this.#canvas.clientWidth - (card.hidden ? 0 : card.offsetWidth + 10));
  }

  #bringIntoView(box: Box): void {
    const { x, y, scale } = this.#view;
    const width = this.#free();
    const height = this.#canvas.clientHeight;
    const [left, top] = [(box.x - x) * scale, (box.y - y) * scale];
    const [right, bottom] = [left + box.width * scale, top + box.height * scale];
    if (left >= 0 && right <= width && top >= this.#top() && bottom <= height) return;
    if (box.width * scale > width - 2 * MARGIN || box.height * scale > height - this.#top() - MARGIN) {
      // It is larger than the view: show all of it, or as much as can be read.
      const fitting = Math.min((width - 2 * MARGIN) / box.width, (height - this.#top() - MARGIN) / box.height);
      const goal = Math.min(scale, Math.max(fitting, 0.3));
      const [roomX, roomY] = [width / goal, height / goal];
      this.#glideTo({
        scale: goal,
        x: box.x + box.width / 2 - roomX / 2,
        y: box.height * goal > height - this.#top() ? box.y - this.#top() / goal : box.y + box.height / 2 - (roomY + this.#top() / goal) / 2,
      });
      return;
    }
    const dx = left < MARGIN ? left - MARGIN : right > width - MARGIN ? right - width + MARGIN : 0;
    const dy = top < this.#top() ? top - this.#top() : bottom > height - MARGIN ? bottom - height + MARGIN : 0;
    this.#glideTo({ scale, x: x + dx / scale, y: y + dy / scale });
  }

  #centre(box: Box): void {
    this.#touched = true;
    const scale = Math.max(0.8, Math.min(1.2, this.#view.scale));
    this.#glideTo({
      scale,
      x: box.x + box.width / 2 - this.#free() / 2 / scale,
      y: box.y + Math.min(box.height, this.#canvas.clientHeight / scale) / 2 - this.#canvas.clientHeight / 2 / scale,
    });
  }

  #glideTo(to: View): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.#view = to;
      this.#redraw();
      return;
    }
    this.#glide = { from: { ...this.#view }, to, start: performance.now() };
    this.#redraw();
  }

  #redraw(): void {
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (!this.#scene || !this.#tree) return;
    if (this.#glide) {
      const { from, to, start } = this.#glide;
      const part = Math.min(1, (performance.now() - start) / GLIDE);
      const eased = 1 - (1 - part) ** 3;
      const mix = (a: number, b: number): number => a + (b - a) * eased;
      const scale = from.scale * (to.scale / from.scale) ** eased;
      this.#view = { scale, x: mix(from.x, to.x), y: mix(from.y, to.y) };
      if (part < 1) this.#redraw();
      else {
        this.#view = { ...to };
        this.#glide = null;
      }
    }
    this.#painter.draw(
      {
        tree: this.#tree,
        scene: this.#scene,
        hues: this.#hues,
        theme: this.#theme,
        sideways: this.#sideways,
        selected: this.#selected,
        hovered: this.#hovered,
        before: this.#before,
        after: this.#after,
      },
      this.#view,
    );
  }

  // Presses, wheels and keys

  #listen(): void {
    const canvas = this.#canvas;
    let press: { x: number; y: number; moved: boolean } | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      press = { x: event.offsetX, y: event.offsetY, moved: false };
      canvas.setPointerCapture(event.pointerId);
      this.#aria.root.focus({ preventScroll: true });
      event.preventDefault();
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!press) return this.#hover(event.offsetX, event.offsetY);
      const [dx, dy] = [event.offsetX - press.x, event.offsetY - press.y];
      if (!press.moved && Math.hypot(dx, dy) < CLICK) return;
      press.moved = true;
      this.#touched = true;
      this.#glide = null;
      this.#tip.hidden = true;
      canvas.classList.add("fb-held");
      this.#view.x -= dx / this.#view.scale;
      this.#view.y -= dy / this.#view.scale;
      press.x = event.offsetX;
      press.y = event.offsetY;
      this.#redraw();
    });
    const release = (event: PointerEvent): void => {
      canvas.classList.remove("fb-held");
      if (press && !press.moved && event.type === "pointerup") this.#click(event.offsetX, event.offsetY);
      press = null;
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => this.#hover(-1, -1));
    canvas.addEventListener("dblclick", (event) => {
      const box = this.#boxAt(event.offsetX, event.offsetY);
      if (box) void this.toggle(box.node);
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        // A page that is scrolled past stays a page: the wheel is the view's once it was clicked.
        if (!event.ctrlKey && !event.metaKey && !this.root.contains(document.activeElement)) return;
        event.preventDefault();
        const unit = event.deltaMode === 1 ? 16 : 1;
        this.zoom(Math.exp(-event.deltaY * unit * (event.ctrlKey ? 0.008 : 0.0018)), event.offsetX, event.offsetY);
      },
      { passive: false },
    );
    const sized = new ResizeObserver(() => {
      if (!this.#painter.resize() || !this.#scene) return;
      if (!this.#touched) this.#view = this.#whole();
      this.#draw();
    });
    sized.observe(this.#canvas);
    this.#ends.push(() => sized.disconnect());
    this.#ends.push(
      onThemeChange(() => {
        this.#theme = readTheme(this.root);
            this.#painter.forgetPaints();
        this.#redraw();
      }),
    );
  }

  #key(event: KeyboardEvent): boolean {
    if (event.key === "+" || event.key === "=") this.zoom(1.35);
    else if (event.key === "-") this.zoom(1 / 1.35);
    else if (event.key === "0" || event.key === "f") this.fit();
    else if (event.key === "/") this.#searchBox.input.focus();
    else if (event.key === "Escape" && this.#selected !== null) this.select(null);
    else return false;
    return true;
  }

  #boxAt(px: number, py: number): Box | null {
    if (!this.#scene) return null;
    const x = this.#view.x + px / this.#view.scale;
    const y = this.#view.y + py / this.#view.scale;
    const holds = (box: Box): boolean => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height;
    for (let i = this.#scene.sheets.length - 1; i >= 0; i--) {
      const sheet = this.#scene.sheets[i];
      const closed = sheet.closed.find(holds);
      if (closed) return closed;
      if (sheet.box && holds(sheet.box)) return sheet.box;
    }
    return null;
  }

  #click(px: number, py: number): void {
    const box = this.#boxAt(px, py);
    if (!box) return this.select(null);
    const x = (this.#view.x + px / this.#view.scale - box.x) * this.#view.scale;
    const y = (this.#view.y + py / this.#view.scale - box.y) * this.#view.scale;
    const reach = 22 * Math.min(1.4, this.#view.scale);
    // The triangle opens and closes; the rest selects.
    if (this.#tree!.isScope(box.node) && x < reach && y < (box.opened ? reach * 1.2 : box.height * this.#view.scale)) {
      void this.toggle(box.node);
    } else this.select(box.node);
  }

  #hover(px: number, py: number): void {
    const box = px < 0 ? null : this.#boxAt(px, py);
    const node = box?.node ?? null;
    this.#canvas.classList.toggle("fb-over", node !== null && !box!.opened);
    if (node !== this.#hovered) {
      this.#hovered = node;
      this.#redraw();
    }
    this.#tip.hidden = node === null || box!.opened;
    if (this.#tip.hidden || node === null) return;
    this.#tip.textContent = `${shortened(shownText(this.#tree!.name(node)), 300)}\n${this.#say(node)}`;
    const room = this.root.clientWidth - this.#tip.offsetWidth - 8;
    this.#tip.style.left = `${Math.max(4, Math.min(room, px + 14))}px`;
    const below = py + 18 + this.#tip.offsetHeight < this.root.clientHeight;
    this.#tip.style.top = `${below ? py + 18 : py - this.#tip.offsetHeight - 10}px`;
  }

  // Words

  #say(node: number): string {
    const tree = this.#tree!;
    const stale = tree.stale[node] > 0 ? ", stale" : "";
    const own = tree.isScope(node) ? tree.own(node) : node;
    if (own >= 0) return `${tree.type(own)}${stale}`;
    const series = tree.kind[node] === Kind.Series ? "series, " : "";
    return `${series}${counted(tree.count(node), "operation")}${stale}`;
  }

  #summary(tree: Hierarchy): string {
    const parts = [counted(tree.data.operations, "operation")];
    if (tree.data.marked) {
      const needed = tree.data.needed.reduce((sum, marks) => sum + (marks & Mark.Executed), 0);
      parts[0] += `, ${needed.toLocaleString("en-US")} of them needed`;
    }
    if (tree.parameters[tree.root] > 0) parts.push(counted(tree.parameters[tree.root], "trainable parameter"));
    if (tree.stale[tree.root] > 0) parts.push(`${tree.stale[tree.root].toLocaleString("en-US")} stale`);
    return parts.join(" · ");
  }

  #saveSvg(): void {
    if (!this.#tree || !this.#scene) return;
    const svg = sceneSvg(this.#tree, this.#scene, this.#sideways);
    const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    element("a", { href: url, download: "graph.svg" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
}
