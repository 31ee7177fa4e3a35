// What is used of JupyterLab, as types: its packages are there when the page runs, and only then.

/** What is in an output. */
export interface MimeModel {
  readonly trusted: boolean;
  readonly data: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
  setData(options: unknown): void;
}

export interface Widget {
  readonly node: HTMLElement;
  dispose(): void;
  setHidden(hidden: boolean): void;
}

export interface Panel extends Widget {
  readonly widgets: readonly Widget[];
  readonly disposed: Signal<unknown>;
  addWidget(widget: Widget): void;
}

export interface Renderer extends Widget {
  renderModel(model: MimeModel): Promise<void>;
}

export interface RendererFactory {
  /** Whether it may be used on what nobody trusts. */
  readonly safe: boolean;
  readonly mimeTypes: readonly string[];
  createRenderer(options: unknown): Renderer;
}

export interface RenderMimeRegistry {
  addFactory(factory: RendererFactory, rank: number): void;
  getFactory(mimeType: string): RendererFactory | undefined;
  createRenderer(mimeType: string): Renderer;
  preferredMimeType(data: Readonly<Record<string, unknown>>, safe: "any" | "ensure"): string | undefined;
}

export interface Signal<Told> {
  connect(call: (sender: unknown, told: Told) => void): void;
  disconnect(call: (sender: unknown, told: Told) => void): void;
}

export interface SessionContext {
  readonly statusChanged: Signal<string>;
}

/** Knows the notebooks, or the consoles, that are open. */
export interface Tracker<Shown> {
  readonly widgetAdded: Signal<Shown>;
  forEach(call: (shown: Shown) => void): void;
}

/** What shows outputs of a kernel. */
export interface Place {
  readonly rendermime: RenderMimeRegistry;
  readonly sessionContext: SessionContext;
}

export interface NotebookPanel {
  readonly sessionContext: SessionContext;
  readonly content: { readonly rendermime: RenderMimeRegistry };
}

export interface ConsolePanel {
  readonly console: Place;
}

/** The packages that are asked of the page. */
export interface Packages {
  readonly "@lumino/widgets": { readonly Panel: new () => Panel };
  readonly "@jupyterlab/notebook": { readonly INotebookTracker: object };
  readonly "@jupyterlab/console": { readonly IConsoleTracker: object };
}

export interface Plugin {
  readonly id: string;
  readonly autoStart: boolean;
  readonly requires: readonly object[];
  activate(app: unknown, ...required: never[]): void;
}
