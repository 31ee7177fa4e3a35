// A graph in a page: what is opened and selected, and what follows from each press and key.
//
// Everything but the values of tensors happens here, in the page: the kernel may be busy or gone.

import { Arranging, arranging, arrangingFirst, openedFirst } from "../core/arranging.js";
import { cardOf } from "../core/card.js";
import { Palette, likenessPalette } from "../core/colours.js";
import { TITLE_SIZE, isOpenable } from "../core/faces.js";
import { Hierarchy } from "../core/hierarchy.js";
import { boxAt } from "../core/hit.js";
import { Group, Tints, differenceMark, differences } from "../core/overlay.js";
import { overlayPalette } from "../core/overlay_colours.js";
import { PageSelection } from "../core/page_selection.js";
import { inflate } from "../core/packing.js";
import { GraphData, Kind, decode } from "../core/payload.js";
import { say, sayFound, summary } from "../core/say.js";
import { Box, Choices, EdgeCache, Scene, Stroke, isAside } from "../core/scene.js";
import { Search } from "../core/search.js";
import { Focus, NO_FOCUS, Selection, carriedOver, edgeSelection, focusOf, nodeOf, nodeSelected } from "../core/selection.js";
import { withSeries } from "../core/series.js";
import { sceneSvg } from "../core/svg.js";
import { AriaTree } from "./aria_tree.js";
import { Painter } from "./canvas.js";
import { CardAction, CardPanel, cardPanel } from "./card_panel.js";
import { element, keepKeys } from "./dom.js";
import { Fetcher } from "./kernel_link.js";
import { Cancelled, LayoutClient } from "./layout_client.js";
import { OverlayKey } from "./overlay_key.js";
import { OVERLAY_STYLES } from "./overlay_styles.js";
import { listenToPointer } from "./pointer.js";
import { SearchBox } from "./search_box.js";
import { STYLES } from "./styles.js";
import { TensorPanel } from "./tensor_panel.js";
import { Theme, onThemeChange, readTheme } from "./theme.js";
import { Tip } from "./tip.js";
import { toolbar } from "./toolbar.js";
import { Viewport } from "./viewport.js";

const CARD_BELOW = 230; // Pixels, as in `overlay_styles.ts`.
const CARD_MARGIN = 10; // As in `styles.ts`, above the card and below it.
const MOST_FOR_CARD = 900; // A card that is higher scrolls.
const MOST_OPENED = 40; // A part of more members stays closed.

export class GraphView {
  readonly root: HTMLElement;
  readonly #canvas = element("canvas", { "aria-hidden": "true" });
  readonly #tip = new Tip(this.#canvas);
  readonly #status = element("div", { class: "fb-status", role: "status" });
  readonly #said = element("div", { class: "fb-said", role: "status", hidden: true });
  readonly #painter: Painter;
  readonly #layouts = new LayoutClient();
  readonly #viewport: Viewport;
  readonly #aria: AriaTree;
  readonly #searchBox: SearchBox;
  readonly #bar: HTMLElement;
  readonly #routingButton: HTMLElement;
  readonly #sidewaysButton: HTMLElement;
  readonly #liveButton: HTMLElement;
  #setLive: (on: boolean) => void = () => undefined;
  readonly #card: CardPanel;
  readonly #tensorPanel: TensorPanel;
  readonly #key: OverlayKey;
  readonly #page: PageSelection;
  readonly #ends: (() => void)[] = [];

  #data: GraphData | null = null;
  #tree: Hierarchy | null = null;
  #edges: EdgeCache | null = null;
  #search: Search | null = null;
  #palette: Palette | null = null;
  /** What is laid over the picture, and which of it colours show; -1 is none. */
  #tints: readonly Tints[] = [];
  #colouring = 0;
  #onlyGroup: number | null = null;
  #differing: Int32Array | null = null;
  /** Another picture of the same graph, which goes along with this one. */
  #partner: GraphView | null = null;
  #scene: Scene | null = null;
  #theme: Theme;
  #opened = new Set<number>();
  #asideByHand = new Map<number, boolean>();
  #controls = false;
  #sideways = false;
  #isTurnedByHand = false;
  #series = false;
  #routing = false;
  #ran: Readonly<Record<string, string>> = {};
  #selected: Selection | null = null;
  #focus: Focus = NO_FOCUS;
  #hovered: Box | Stroke | null = null;
  #turn = 0;
  #frame = 0;

  /**
   * @param name that of the graph in the page, by which views of it find each other; may be empty.
   */
  constructor(place: HTMLElement, fetcher: Fetcher | null = null, label = "graph", name = "") {
    this.#page = new PageSelection(name, (operation) => void this.#hear(operation));
    this.#tensorPanel = new TensorPanel(fetcher);
    this.#card = cardPanel(
      (goal) => void this.reveal(goal),
      () => this.select(null),
      () => this.#aria.root.focus({ preventScroll: true }),
    );
    this.#searchBox = new SearchBox(
      () => this.#search,
      (node) => say(this.#tree!, node),
      (node) => void this.reveal({ kind: "node", node }),
    );
    this.#aria = new AriaTree({
      select: (selection) => this.select(selection, true),
      open: (node) => void this.open(node),
      close: (node) => void this.close(node),
      key: (event) => this.#press(event),
    });
    ({ root: this.#bar, routing: this.#routingButton, sideways: this.#sidewaysButton, live: this.#liveButton } = toolbar(
      {
        fit: () => this.fit(),
        zoom: (by) => this.#zoom(by),
        collapseAll: () => void this.collapseAll(),
        setControls: (on) => void this.#change(() => (this.#controls = on)),
        setSideways: (on) => {
          this.#isTurnedByHand = true;
          void this.#change(() => (this.#sideways = on), true);
        },
        setSeries: (on) => void this.#regrow(() => (this.#series = on)),
        setLive: (on) => this.#setLive(on),
        setRouting: (on) => void this.#regrow(() => (this.#routing = on)),
        exportSvg: () => this.#saveSvg(),
      },
      this.#searchBox.root,
    ));
    this.#key = new OverlayKey(
      (colouring) => this.#chooseColours(colouring, null),
      (group) => this.#chooseColours(this.#colouring, group),
    );
    this.root = element("div", { class: "fb-graph", role: "group", "aria-label": label });
    keepKeys(this.root);
    this.root.append(
      element("style", {}, STYLES + OVERLAY_STYLES), this.#canvas, this.#aria.root, this.#card.root, this.#bar, this.#key.root, this.#said,
      this.#status,
    );
    place.append(this.root);
    this.#painter = new Painter(this.#canvas);
    this.#theme = readTheme(this.root);
    this.#layouts.warm();
    this.#viewport = new Viewport(
      () => this.#room(),
      () => this.#theme.size / TITLE_SIZE,
      () => this.#redraw(),
    );
    this.#listen();
  }

  /** Show a graph; or a later state of the same, with what was opened and selected as it was. */
  async load(packed: Uint8Array<ArrayBuffer>): Promise<void> {
    const turn = ++this.#turn;
    const data = decode(await inflate(packed));
    if (turn !== this.#turn) return;
    this.#data = data;
    this.#routingButton.hidden = !data.routing.includes(1);
    this.#grow(this.#treeOf(data));
    await this.#relayout(null);
  }

  /** Let a person choose between the graph as of its cell, which is shown, and the graph as it is now. */
  offerLive(choose: (on: boolean) => void): void {
    this.#liveButton.hidden = false;
    this.#setLive = choose;
  }

  /** Say how loops and branches ran last, by their names. */
  async tell(ran: Readonly<Record<string, string>>): Promise<void> {
    this.#ran = ran;
    if (!this.#tree) return;
    this.#tree.ran = ran;
    await this.#relayout(null);
  }

  /** Say something beside the picture, such as that its session has ended; nothing for "". */
  say(text: string): void {
    this.#said.textContent = text;
    this.#said.hidden = text === "";
  }

  /** Have this go along with another picture of the same graph. What is said of what is selected stands below it. */
  link(other: GraphView): void {
    this.#partner = other;
    this.root.classList.add("fb-linked");
    this.root.append(element("p", { class: "fb-hint" }, "Select something to see why it runs where it does."));
  }

  dispose(): void {
    this.#turn += 1;
    cancelAnimationFrame(this.#frame);
    for (const end of this.#ends) end();
    this.#page.leave();
    this.#tensorPanel.clear();
    this.#layouts.close();
    this.root.remove();
  }

  // What a person does

  select(selection: Selection | null, follow = false): void {
    this.#select(selection, follow);
    this.#share();
    this.#tell();
  }

  /** Tell other views in the page what is selected. */
  #tell(): void {
    const selected = this.#selected;
    this.#page.tell(selected && this.#tree!.name(nodeOf(this.#tree!, selected)));
  }

  /** Another view in the page has something selected, by its name. */
  async #hear(name: string | null): Promise<void> {
    if (name === null) {
      this.#select(null);
      return this.#share();
    }
    const node = this.#tree?.find(`op:${name}`) ?? this.#tree?.find(`scope:${name}`);
    if (node !== undefined) await this.#reveal({ kind: "node", node });
  }

  #select(selection: Selection | null, follow = false): void {
    if (!this.#tree || !this.#scene) return;
    this.#selected = selection;
    this.#showSelected();
    const box = selection && this.#scene.boxes.get(this.#tree.shown(nodeOf(this.#tree, selection), this.#opened));
    if (box && selection) {
      if (follow) this.#viewport.bringIn(box);
      else this.#viewport.uncover(box);
    }
    this.#redraw();
  }

  async open(node: number): Promise<void> {
    if (!this.#tree) return;
    const body = this.#tree.body(node);
    if (body >= 0) {
      // It is one for all calls: it is opened where it lies.
      await this.reveal({ kind: "node", node: body });
      return this.open(body);
    }
    await this.#unfold(node);
  }

  /** Show what lies in a node itself, though it may be a call of something else. */
  async #unfold(node: number): Promise<void> {
    if (!this.#tree || !isOpenable(this.#tree, node)) return;
    this.#opened.add(node);
    // A loop's or a branch's parts are what it is opened for.
    for (const child of this.#tree.members(node)) {
      if (this.#tree.kind[child] === Kind.Part && this.#tree.members(child).length <= MOST_OPENED) this.#opened.add(child);
    }
    this.#share();
    await this.#relayout(node);
  }

  async close(node: number): Promise<void> {
    const tree = this.#tree;
    if (!tree || !this.#opened.delete(node)) return;
    const selected = nodeSelected(this.#selected);
    if (selected !== null && selected !== node && tree.around(selected).includes(node)) this.select({ kind: "node", node });
    this.#share();
    await this.#relayout(node);
  }

  async toggle(node: number): Promise<void> {
    await (this.#opened.has(node) ? this.close(node) : this.open(node));
  }

  async collapseAll(): Promise<void> {
    this.#opened.clear();
    const selected = nodeSelected(this.#selected);
    if (selected !== null && this.#tree) this.select({ kind: "node", node: this.#tree.shown(selected, this.#opened) });
    this.#share();
    await this.#relayout(null);
    this.fit();
  }

  /** Open what lies around something, select it, and bring it into view. */
  async reveal(goal: Selection): Promise<void> {
    await this.#reveal(goal);
    this.#tell();
  }

  async #reveal(goal: Selection): Promise<void> {
    const tree = this.#tree;
    if (!tree) return;
    const node = nodeOf(tree, goal);
    if (tree.isHidden(node)) return this.#revealRouting(goal);
    const fresh = tree.around(node).filter((scope) => !this.#opened.has(scope));
    for (const scope of fresh) this.#opened.add(scope);
    if (fresh.length > 0) await this.#relayout(null);
    const box = this.#scene?.boxes.get(node);
    this.#select(goal);
    if (box) this.#viewport.centre(box);
    this.#share(true);
  }

  fit(): void {
    if (this.#scene) this.#viewport.fit(this.#scene);
  }

  #zoom(by: number): void {
    this.#viewport.zoom(by, this.#canvas.clientWidth / 2, this.#canvas.clientHeight / 2);
  }

  /** Let the picture that is linked show the same; `centred`, with what is selected in its middle. */
  #share(centred = false): void {
    if (this.#partner) void this.#partner.#follow(this, centred);
  }

  async #follow(other: GraphView, centred: boolean): Promise<void> {
    const [tree, theirs] = [this.#tree, other.#tree];
    if (!tree || !theirs) return;
    const before = this.#opened;
    this.#opened = new Set([...other.#opened].flatMap((node) => tree.find(theirs.key(node)) ?? []));
    this.#selected = carriedOver(theirs, tree, other.#selected);
    const isSame = before.size === this.#opened.size && [...before].every((node) => this.#opened.has(node));
    if (isSame) this.#showSelected();
    else await this.#relayout(null);
    const box = this.#selected && this.#scene?.boxes.get(tree.shown(nodeOf(tree, this.#selected), this.#opened));
    if (box && centred) this.#viewport.centre(box);
    else if (box) this.#viewport.bringIn(box);
    this.#redraw();
  }

  /** Show what a colouring tells; -1 is likeness. */
  #colour(colouring: number, only: number | null): void {
    this.#colouring = colouring;
    this.#onlyGroup = only;
    this.#paintBy(this.#tints[colouring] ?? null);
    this.#showSelected();
    this.#redraw();
  }

  #chooseColours(colouring: number, only: number | null): void {
    this.#colour(colouring, only);
    const partner = this.#partner;
    if (!partner) return;
    // Devices are told by their colours: each plan numbers its own.
    const groups = (view: GraphView): readonly Group[] => view.#tints[colouring]?.colouring.groups ?? [];
    const found = only === null ? -1 : groups(partner).findIndex(({ colour }) => colour === groups(this)[only].colour);
    partner.#colour(partner.#tints.length > colouring ? colouring : 0, found < 0 ? null : found);
  }

  // How the picture comes about

  #grow(tree: Hierarchy): void {
    const before = this.#tree;
    const again = (nodes: Iterable<number>): number[] =>
      before ? [...nodes].flatMap((node) => tree.find(before.key(node)) ?? []) : [];
    const opened = again(this.#opened);
    const aside = new Map<number, boolean>();
    for (const [node, on] of this.#asideByHand) for (const found of again([node])) aside.set(found, on);
    this.#selected = before && carriedOver(before, tree, this.#selected);
    this.#tree = tree;
    tree.ran = this.#ran;
    this.#search = new Search(tree);
    this.#lay(tree);
    this.#opened = new Set(opened);
    this.#asideByHand = aside;
    this.#edges = this.#newEdges();
    this.#hovered = null;
    if (!before) this.#opened = openedFirst(tree);
    this.#tellDashes();
  }

  /** Lay over a tree what there is to lay over it. */
  #lay(tree: Hierarchy): void {
    const { overlay } = tree.data;
    this.#tints = overlay ? overlay.colourings.map((_, i) => new Tints(tree, overlay, i)) : [];
    this.#differing = overlay && differences(tree, overlay);
    if (overlay) this.#key.list(overlay.colourings);
    this.#paintBy(this.#tints[this.#colouring] ?? null);
  }

  #paintBy(tints: Tints | null): void {
    const tree = this.#tree!;
    this.#palette = tints ? overlayPalette(tints) : likenessPalette(tree);
    tree.coloured = tints ? (node) => tints.say(node) : () => "";
    this.#showKey();
  }

  #showKey(): void {
    const { overlay } = this.#tree?.data ?? { overlay: null };
    if (!overlay) return;
    const facts = {
      title: overlay.title,
      crosses: overlay.crossTensor.length > 0,
      differing: this.#differing![this.#tree!.root],
    };
    this.#key.show(facts, this.#tints[this.#colouring] ?? null, this.#onlyGroup, this.#theme.dark);
    this.root.style.setProperty("--fb-base", `${this.#base}px`);
  }

  /** Whether something else stands out: what a run needs, or one group. */
  readonly #isFaint = (node: number): boolean => {
    if (!this.#tree!.needed[node]) return true;
    const only = this.#onlyGroup === null ? null : this.#tints[this.#colouring]?.colouring.groups[this.#onlyGroup];
    return only != null && !this.#tints[this.#colouring].shares(node).some(({ group }) => group === only);
  };

  #newEdges(): EdgeCache {
    return new EdgeCache(this.#tree!, this.#choices);
  }

  /** What there is, and what its dashes mean. */
  #tellDashes(): void {
    const tree = this.#tree!;
    const signs = [
      ["fb-isStale", "stale", tree.stale[tree.root] > 0],
      ["fb-isRetired", "redefined, still referred to", tree.data.retired.includes(1)],
      ["fb-isControl", "only waits", this.#controls],
    ] as const;
    const legend = signs.flatMap(([kind, text, is]) =>
      is ? [element("span", { class: `fb-dashes ${kind}` }, element("i", { "aria-hidden": "true" }), text)] : [],
    );
    this.#status.replaceChildren(summary(tree), ...legend);
  }

  get #choices(): Choices {
    return {
      opened: this.#opened,
      aside: this.#asideByHand,
      controls: this.#controls,
      sideways: this.#sideways,
    };
  }

  /** Lay out what is opened; keep `anchor` where it is on the screen. */
  async #relayout(anchor: number | null): Promise<void> {
    const tree = this.#tree!;
    const turn = ++this.#turn;
    let scene: Scene;
    try {
      scene = await this.#layouts.follow(this.#arranging(tree));
    } catch (error) {
      if (error instanceof Cancelled || turn !== this.#turn) return;
      this.#status.textContent = `The layout failed: ${String(error)}`;
      throw error;
    }
    if (turn !== this.#turn) return;
    const before = this.#scene;
    const [old, box] = anchor === null ? [] : [before?.boxes.get(anchor), scene.boxes.get(anchor)];
    this.#scene = scene;
    this.#hovered = null;
    this.#showSelected();
    if (!before) this.#takeHeight();
    if (old && box) this.#viewport.hold(old, box);
    else this.#viewport.follow(scene);
    this.#draw();
    this.root.dataset["drawn"] = String(performance.timeOrigin + performance.now());
  }

  *#arranging(tree: Hierarchy): Arranging<Scene> {
    if (this.#scene || this.#isTurnedByHand) return yield* arranging(tree, this.#edges!, this.#choices);
    const { scene, sideways } = yield* arrangingFirst(tree, this.#edges!, this.#choices);
    this.#sideways = sideways;
    this.#sidewaysButton.setAttribute("aria-pressed", String(sideways));
    return scene;
  }

  async #change(set: () => void, refit = false): Promise<void> {
    set();
    if (!this.#tree) return;
    this.#edges = this.#newEdges();
    this.#tellDashes();
    if (refit) this.#viewport.touched = false;
    await this.#relayout(null);
  }

  /** What changes of which nodes the tree is made. */
  async #regrow(set: () => void): Promise<void> {
    set();
    if (!this.#data) return;
    this.#grow(this.#treeOf(this.#data));
    this.#viewport.touched = false;
    await this.#relayout(null);
  }

  #treeOf(data: GraphData): Hierarchy {
    if (this.#series) return withSeries(data, this.#routing);
    return new Hierarchy(data, data.parent, data.kind, data.template, data.aside, [], this.#routing);
  }

  /** Show what only routes values, and something of it. */
  async #revealRouting(goal: Selection): Promise<void> {
    const before = this.#tree!;
    this.#routingButton.setAttribute("aria-pressed", "true");
    await this.#regrow(() => (this.#routing = true));
    const there = carriedOver(before, this.#tree!, goal);
    if (there) await this.reveal(there);
  }

  /** Everything that tells of the selection. */
  #showSelected(): void {
    const tree = this.#tree!;
    const selected = this.#selected;
    this.#focus = focusOf(tree, this.#opened, selected);
    this.#aria.update(tree, this.#opened, selected);
    if (selected?.kind === "tensor") this.#tensorPanel.show(tree, selected.tensor);
    if (!selected) this.#card.show(null);
    else if (selected.kind === "node") this.#card.show(cardOf(tree, selected, this.#tints), this.#actionsOf(selected.node));
    else this.#card.show(cardOf(tree, selected), [], this.#tensorPanel.root);
    // Last: the card gives away the focus that is in there.
    if (selected?.kind !== "tensor") this.#tensorPanel.clear();
  }

  #actionsOf(node: number): CardAction[] {
    const tree = this.#tree!;
    const actions: CardAction[] = [];
    if (isOpenable(tree, node)) {
      const isOpened = this.#opened.has(node);
      actions.push({ label: isOpened ? "Collapse" : "Expand", press: () => void (isOpened ? this.close(node) : this.#unfold(node)) });
    }
    const own = tree.isScope(node) ? tree.own(node) : node;
    const call = tree.body(node) >= 0 ? node : own;
    if (tree.body(call) >= 0) actions.push({ label: "Open the body", press: () => void this.open(call) });
    const aside = isAside(tree, this.#choices, node);
    actions.push({
      label: aside ? "Bring back" : "Set aside",
      press: () => void this.#change(() => this.#asideByHand.set(node, !aside)),
    });
    const alike = tree.nextAlike(node);
    if (alike !== null) actions.push({ label: "Next alike", press: () => void this.reveal({ kind: "node", node: alike }) });
    return actions;
  }

  // Where and how it is drawn

  #room(): { width: number; height: number; top: number; free: number } {
    const { clientWidth: width } = this.#canvas;
    const height = this.#canvas.clientHeight - this.#base;
    const card = this.#card.root;
    const free = Math.max(160, width - (card.hidden || this.#partner ? 0 : card.offsetWidth + 10));
    return { width, height, top: this.#bar.offsetHeight + 22, free };
  }

  /** How high that is which lies over the bottom of the canvas. */
  get #base(): number {
    return this.#key.root.offsetHeight + (this.#partner ? CARD_BELOW : 0);
  }

  /** See that the card beside the graph is there as a whole. */
  #makeRoomForCard(): void {
    const card = this.#card.root;
    const beside = !card.hidden && !this.#partner;
    const border = card.offsetHeight - card.clientHeight;
    const needed = card.scrollHeight + border + 2 * CARD_MARGIN + this.#base + this.root.offsetHeight - this.root.clientHeight;
    this.root.style.minHeight = beside ? `${Math.min(needed, MOST_FOR_CARD)}px` : "";
  }

  #takeHeight(): void {
    this.root.style.height = `${this.#viewport.heightFor(this.#scene!) + this.#base}px`;
    this.#painter.resize();
  }

  #redraw(): void {
    if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#draw());
  }

  #draw(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (!this.#scene || !this.#tree) return;
    if (this.#viewport.step()) this.#redraw();
    this.#painter.draw(
      {
        tree: this.#tree,
        scene: this.#scene,
        palette: this.#palette!,
        isFaint: this.#isFaint,
        differs: (node) => differenceMark(this.#tree!, this.#differing, node),
        theme: this.#theme,
        sideways: this.#sideways,
        focus: this.#focus,
        hovered: this.#hovered,
      },
      this.#viewport.view,
    );
  }

  // Presses, wheels and keys

  #listen(): void {
    listenToPointer(this.#canvas, {
      press: () => this.#aria.root.focus({ preventScroll: true }),
      pan: (dx, dy) => this.#viewport.pan(dx, dy),
      click: (x, y) => this.#click(x, y),
      doubleClick: (x, y) => {
        const found = this.#at(x, y);
        if (found && "node" in found) void this.toggle(found.node);
      },
      hover: (at) => this.#hover(at),
      zoom: (by, x, y) => this.#viewport.zoom(by, x, y),
      // A page that is scrolled past stays a page: the wheel is the view's once it was clicked.
      takesWheel: (event) => event.ctrlKey || event.metaKey || this.root.contains(document.activeElement),
    });
    const sized = new ResizeObserver(() => {
      this.#showKey();
      if (!this.#painter.resize() || !this.#scene) return;
      this.#viewport.follow(this.#scene);
      this.#draw();
    });
    sized.observe(this.#canvas);
    this.#ends.push(() => sized.disconnect());
    // What is in the card changes by itself too: a value arrives, and then its images.
    const filled = new ResizeObserver(() => this.#makeRoomForCard());
    filled.observe(this.#tensorPanel.root);
    const changed = new MutationObserver(() => this.#makeRoomForCard());
    changed.observe(this.#card.root, { childList: true });
    this.#ends.push(() => filled.disconnect(), () => changed.disconnect());
    this.#ends.push(
      onThemeChange(this.root, () => {
        const { size } = this.#theme;
        this.#theme = readTheme(this.root);
        this.#painter.forgetPaints();
        this.#showKey();
        if (this.#scene && this.#theme.size !== size) {
          this.#takeHeight();
          this.#viewport.follow(this.#scene);
        }
        this.#redraw();
      }),
    );
  }

  #press(event: KeyboardEvent): boolean {
    if (event.key === "+" || event.key === "=") this.#zoom(1.35);
    else if (event.key === "-") this.#zoom(1 / 1.35);
    else if (event.key === "0" || event.key === "f") this.fit();
    else if (event.key === "/") this.#searchBox.input.focus();
    else if (event.key === "Escape" && this.#selected !== null) this.select(null);
    else return false;
    return true;
  }

  /** The closed box at a point of the canvas, or the line of an edge, or the opened box. */
  #at(px: number, py: number): Box | Stroke | null {
    if (!this.#scene) return null;
    const [x, y] = this.#viewport.at(px, py);
    const box = boxAt(this.#scene, x, y);
    if (box && !box.opened) return box;
    return this.#painter.strokeAt(this.#scene, this.#sideways, x, y, this.#viewport.view.scale) ?? box;
  }

  #click(px: number, py: number): void {
    const found = this.#at(px, py);
    if (!found) return this.select(null);
    if (!("node" in found)) return this.#selectEdge(found);
    const { scale } = this.#viewport.view;
    const [x, y] = this.#viewport.at(px, py).map((value, i) => (value - (i ? found.y : found.x)) * scale);
    const reach = 22 * Math.min(1.4, scale);
    // The triangle opens and closes; the rest selects.
    if (this.#tree!.isScope(found.node) && x < reach && y < (found.opened ? reach * 1.2 : found.height * scale)) {
      void this.toggle(found.node);
    } else this.select({ kind: "node", node: found.node });
  }

  #selectEdge({ edge }: Stroke): void {
    // One that only says who waits for whom leads to who waits.
    if (!edge || edge.tensors.length === 0) return this.select(edge && { kind: "node", node: edge.target });
    this.select(edgeSelection(edge.source, edge.target, edge.tensors));
  }

  #hover(at: readonly [number, number] | null): void {
    const found = at && this.#at(...at);
    const opened = found !== null && "node" in found && found.opened;
    this.#canvas.classList.toggle("fb-over", found !== null && !opened);
    if (found !== this.#hovered) {
      this.#hovered = found;
      this.#redraw();
    }
    if (!at || !found || opened) this.#tip.hide();
    else this.#tip.show(...at, sayFound(this.#tree!, found));
  }

  #saveSvg(): void {
    if (!this.#tree || !this.#scene) return;
    const svg = sceneSvg(this.#tree, this.#scene, this.#sideways, this.#palette!);
    const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    element("a", { href: url, download: "graph.svg" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
}
