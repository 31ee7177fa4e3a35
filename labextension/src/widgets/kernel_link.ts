// Asks the kernel for the value of a tensor: through a comm of the page's own, which JupyterLab runs
// on a subshell, so that the answer comes while a cell runs.
//
// Before each question the page waits for a sign that someone listens. So a question that was
// cancelled while the kernel was busy is never asked.

export interface Histogram {
  readonly edges: readonly number[];
  readonly counts: readonly number[];
  /** What is counted: values, or magnitudes. */
  readonly of: string;
}

export interface Value {
  readonly kind: "value";
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: number;
  readonly text?: string;
  readonly statistics?: readonly (readonly [string, string])[];
  readonly histogram?: Histogram;
  /** Width and height of each picture. */
  readonly pictures?: readonly (readonly [number, number])[];
  /** What is black in them, and what is white. */
  readonly scale?: readonly [string, string];
  /** Where the session was made that fetched it, and what it was fed with. */
  readonly session: string;
  readonly fed: readonly string[];
}

interface Failure {
  readonly kind: "error";
  readonly text: string;
}

type Reply = (Value | Failure | { readonly kind: "listening" }) & { readonly id?: number };

export interface Answer {
  readonly value: Value;
  /** PNG files. */
  readonly pictures: readonly Blob[];
}

/** What fetches tensors by name; `heard` is called once the kernel listens. */
export interface Fetcher {
  fetch(tensor: string, heard: () => void, cancelled: AbortSignal): Promise<Answer>;
}

// What is used of JupyterLab's kernel connection.

interface Message {
  readonly content: { readonly data: unknown };
  readonly buffers?: readonly (ArrayBuffer | ArrayBufferView)[];
}

interface Comm {
  readonly isDisposed: boolean;
  readonly subshellStarted?: Promise<void>;
  readonly commsOverSubshells?: string;
  onMsg: (message: Message) => void;
  onClose: (message: Message) => void;
  close(): unknown;
  open(data: object): unknown;
  send(data: object): unknown;
}

export interface Kernel {
  readonly info: Promise<unknown>;
  readonly supportsSubshells?: boolean;
  createComm(target: string): Comm;
}

interface Pending {
  resolve(reply: [Reply, readonly Blob[]]): void;
  reject(error: Error): void;
}

const TARGET = "flowbook.fetch";

export class KernelLink implements Fetcher {
  #comm: Comm | null = null;
  #open: Promise<Comm> | null = null;
  #next = 1;
  readonly #pending = new Map<number, Pending>();

  constructor(readonly kernel: () => Kernel | null, readonly view: string) {}

  async fetch(tensor: string, heard: () => void, cancelled: AbortSignal): Promise<Answer> {
    await this.#asked({ kind: "ping" }, cancelled);
    heard();
    const [reply, pictures] = await this.#asked({ kind: "fetch", view: this.view, tensor }, cancelled);
    if (reply.kind === "value") return { value: reply, pictures };
    throw new Error(reply.kind === "error" ? reply.text : "The kernel gave no answer.");
  }

  /** End it: nothing will be asked any more. */
  close(): void {
    if (this.#comm && !this.#comm.isDisposed) this.#comm.close();
    this.#closed();
  }

  async #asked(question: object, cancelled: AbortSignal): Promise<[Reply, readonly Blob[]]> {
    const gone = new Promise<never>((_, reject) => {
      cancelled.addEventListener("abort", () => reject(cancelled.reason as Error), { once: true });
    });
    const comm = await Promise.race([this.#opened(), gone]);
    cancelled.throwIfAborted();
    const id = this.#next++;
    const reply = new Promise<[Reply, readonly Blob[]]>((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    comm.send({ ...question, id });
    try {
      return await Promise.race([reply, gone]);
    } finally {
      this.#pending.delete(id);
    }
  }

  #opened(): Promise<Comm> {
    if (this.#comm?.isDisposed) this.#closed();
    this.#open ??= this.#opening();
    return this.#open;
  }

  async #opening(): Promise<Comm> {
    const kernel = this.kernel();
    if (!kernel) throw new Error("This page is not joined to a kernel.");
    await kernel.info;
    const comm = kernel.createComm(TARGET);
    this.#comm = comm;
    // What is sent before the subshell is there would wait for the cell that runs.
    if (kernel.supportsSubshells && comm.commsOverSubshells !== "disabled") await comm.subshellStarted;
    const listening = new Promise<void>((resolve, reject) => {
      comm.onMsg = (message) => {
        this.#received(message);
        resolve();
      };
      comm.onClose = () => {
        this.#closed();
        reject(new Error("The kernel does not know this picture: show it again."));
      };
    });
    comm.open({});
    await listening;
    return comm;
  }

  #closed(): void {
    this.#comm = null;
    this.#open = null;
    for (const { reject } of this.#pending.values()) reject(new Error("The kernel has gone."));
  }

  #received({ content, buffers }: Message): void {
    const reply = content.data as Reply;
    const pictures = (buffers ?? []).map((each) => new Blob([each as BlobPart], { type: "image/png" }));
    if (reply.id !== undefined) this.#pending.get(reply.id)?.resolve([reply, pictures]);
  }
}
