// The tree of scopes: who lies in whom, what each holds, and how each is called.
//
// Operations are kept in the order of a walk through the tree, so that those of a scope are one
// range of it.

import { GraphData, Kind, Mark } from "./payload.js";
import { beside } from "./words.js";

export class Hierarchy {
  readonly root: number;
  readonly size: number;
  readonly depth: Int32Array;
  /** Operations in the order of the walk. */
  readonly order: Int32Array;
  /** Where in `order` the operations of a node begin and end. */
  readonly begin: Int32Array;
  readonly end: Int32Array;
  /** How many elements the trainable variables in a node have. */
  readonly parameters: Float64Array;
  /** How many operations in a node are stale. */
  readonly stale: Int32Array;
  /** The marks of everything in a node; nonzero everywhere where nothing is marked. */
  readonly needed: Uint8Array;
  /** Those that take a tensor: of tensor t in [takerStart[t], takerStart[t + 1]). */
  readonly takerStart: Int32Array;
  readonly taker: Int32Array;
  /** Those that wait for an operation. */
  readonly waiterStart: Int32Array;
  readonly waiter: Int32Array;
  /** The tensors that lines to each operation come from, and those to which lines lead from each tensor. */
  readonly wireStart: Int32Array;
  readonly wire: Int32Array;
  readonly wiredStart: Int32Array;
  readonly wired: Int32Array;
  /** How many operations in a node are not shown. */
  readonly unseen: Int32Array;
  /** What is said of loops and branches, by their names: how they ran last. */
  ran: Readonly<Record<string, string>> = {};
  /** What the colour of a node says, in words; empty where it says nothing. */
  coloured: (node: number) => string = () => "";
  /** The operation that each tensor comes from. */
  readonly producer: Int32Array;
  /** How many nodes have the same template. */
  readonly alike: ReadonlyMap<number, number>;

  readonly #childStart: Int32Array;
  readonly #child: Int32Array;
  readonly #byPath = new Map<string, number>();

  constructor(
    readonly data: GraphData,
    /** The scope that each node lies in: the data's own, or with series put in. */
    readonly parent: Int32Array = data.parent,
    readonly kind: Uint8Array = data.kind,
    readonly template: Int32Array = data.template,
    readonly aside: Uint8Array = data.aside,
    /** Names of the nodes beyond those of the data. */
    readonly extraLabels: readonly string[] = [],
    /** Whether what only routes values is shown. */
    readonly showsRouting: boolean = false,
  ) {
    this.root = data.operations;
    this.size = parent.length;
    const first = this.#first();
    [this.#childStart, this.#child] = this.#children(first);
    this.depth = new Int32Array(this.size);
    this.order = new Int32Array(data.operations);
    this.begin = new Int32Array(this.size);
    this.end = new Int32Array(this.size);
    this.parameters = new Float64Array(this.size);
    this.stale = new Int32Array(this.size);
    this.needed = new Uint8Array(this.size);
    this.unseen = new Int32Array(this.size);
    this.#walk();
    this.producer = new Int32Array(data.spec.length);
    for (let op = 0; op < data.operations; op++) {
      this.producer.fill(op, data.outputStart[op], data.outputStart[op + 1]);
    }
    [this.takerStart, this.taker] = reversed(data.inputStart, data.input, data.spec.length);
    this.wireStart = showsRouting ? data.inputStart : data.wireStart;
    this.wire = showsRouting ? data.input : data.wire;
    const isPlain = this.wire === data.input;
    [this.wiredStart, this.wired] = isPlain
      ? [this.takerStart, this.taker]
      : reversed(this.wireStart, this.wire, data.spec.length);
    [this.waiterStart, this.waiter] = reversed(data.controlStart, data.control, data.operations);
    const alike = new Map<number, number>();
    for (let node = data.operations; node < this.size; node++) {
      const template = this.template[node];
      alike.set(template, (alike.get(template) ?? 0) + 1);
    }
    this.alike = alike;
  }

  isScope(node: number): boolean {
    return node >= this.data.operations;
  }

  /** The next scope with the same template as a scope, round and round; null without another. */
  nextAlike(scope: number): number | null {
    if (!this.isScope(scope) || (this.alike.get(this.template[scope]) ?? 0) < 2) return null;
    for (let step = 1; step < this.size; step++) {
      const other = ((scope + step - this.root) % (this.size - this.root)) + this.root;
      if (other !== this.root && this.template[other] === this.template[scope]) return other;
    }
    return null;
  }

  children(node: number): Int32Array {
    if (!this.isScope(node)) return new Int32Array(0);
    const i = node - this.data.operations;
    return this.#child.subarray(this.#childStart[i], this.#childStart[i + 1]);
  }

  /** The children that are shown. */
  members(node: number): number[] {
    return [...this.children(node)].filter((child) => !this.isHidden(child));
  }

  /** Whether a node only routes values, and is not shown. */
  isHidden(node: number): boolean {
    const kind = this.kind[node];
    return kind !== Kind.Part && kind !== Kind.Role && this.unseen[node] > 0 && this.unseen[node] === this.count(node);
  }

  /** How many operations are in a node; one in itself. */
  count(node: number): number {
    return this.end[node] - this.begin[node];
  }

  label(node: number): string {
    const extra = node - this.data.label.length;
    return extra >= 0 ? this.extraLabels[extra] : this.data.strings[this.data.label[node]];
  }

  /** The operation whose name is a scope's own, or -1. */
  own(node: number): number {
    const i = node - this.data.operations;
    return i >= 0 && i < this.data.own.length ? this.data.own[i] : -1;
  }

  /** The full name of an operation or a scope. */
  name(node: number): string {
    if (this.data.named[node] >= 0) return this.data.strings[this.data.named[node]];
    const parts: string[] = [];
    let at = node;
    if (!this.isScope(at) && this.own(this.#realParent(at)) === at) at = this.#realParent(at);
    while (at !== this.root && at >= 0) {
      parts.push(this.label(at));
      at = at < this.data.parent.length ? this.data.parent[at] : this.parent[at];
    }
    return parts.reverse().join("/");
  }

  /** The Python variable that has the value of an operation, or of a scope's own; or an empty text. */
  variable(node: number): string {
    const op = this.isScope(node) ? this.own(node) : node;
    return op >= 0 ? this.data.strings[this.data.variable[op]] : "";
  }

  /** What a node is called: its name, beside the variable that has its value. */
  called(node: number): string {
    return beside(this.variable(node), this.name(node));
  }

  /** What a tensor is called: its name, beside the variable that has it. */
  tensorCalled(tensor: number): string {
    const op = this.producer[tensor];
    const variables = this.variable(op).split(", ");
    const isEach = variables.length === this.data.outputStart[op + 1] - this.data.outputStart[op];
    return beside(isEach ? variables[tensor - this.data.outputStart[op]] : "", this.tensorName(tensor));
  }

  /** What tells a node from all others in every state of the graph: its name, and what it is. */
  key(node: number): string {
    return `${this.isScope(node) ? (this.kind[node] === Kind.Series ? "series" : "scope") : "op"}:${this.name(node)}`;
  }

  find(key: string): number | undefined {
    if (this.#byPath.size === 0) {
      for (let node = 0; node < this.size; node++) this.#byPath.set(this.key(node), node);
    }
    return this.#byPath.get(key);
  }

  type(op: number): string {
    return this.data.strings[this.data.type[op]];
  }

  spec(tensor: number): string {
    return this.data.strings[this.data.spec[tensor]];
  }

  /** The name of a tensor: `operation:port`. */
  tensorName(tensor: number): string {
    const op = this.producer[tensor];
    return `${this.name(op)}:${tensor - this.data.outputStart[op]}`;
  }

  /** The node itself, or the outermost around it that is not in an opened scope. */
  shown(node: number, opened: ReadonlySet<number>): number {
    let visible = node;
    for (let at = node; at !== this.root && at >= 0; at = this.parent[at]) {
      const outer = this.parent[at];
      if (outer !== this.root && !opened.has(outer)) visible = outer;
    }
    return visible;
  }

  /** What more there is to say of a scope; empty if nothing. */
  about(node: number): string {
    const text = this.data.about[node - this.data.operations];
    return text >= 0 ? this.data.strings[text] : "";
  }

  /** The body of the function or the template that a node calls, which is one for all its calls; or -1. */
  body(node: number): number {
    return this.data.body[node] ?? -1;
  }

  /** The calls of a function whose body a scope is. */
  calls(scope: number): number[] {
    return [...this.data.body.keys()].filter((node) => this.data.body[node] === scope);
  }

  /** The scopes around a node, the innermost first, without the root. */
  around(node: number): number[] {
    const found: number[] = [];
    for (let at = this.parent[node]; at !== this.root && at >= 0; at = this.parent[at]) found.push(at);
    return found;
  }

  /** For each operation whether it is, or lies in, a node of some kind. */
  within(isSuch: (node: number) => boolean): Uint8Array {
    const found = new Uint8Array(this.data.operations);
    for (let node = 0; node < this.size; node++) {
      if (!isSuch(node)) continue;
      for (let place = this.begin[node]; place < this.end[node]; place++) found[this.order[place]] = 1;
    }
    return found;
  }

  #realParent(node: number): number {
    return this.data.parent[node];
  }

  /** The first operation in each node. */
  #first(): Int32Array {
    const total = this.data.operations;
    const first = new Int32Array(this.size).fill(total);
    for (let op = 0; op < total; op++) {
      for (let at = op; at >= 0 && first[at] > op; at = this.parent[at]) first[at] = op;
    }
    return first;
  }

  #children(first: Int32Array): [Int32Array, Int32Array] {
    const total = this.data.operations;
    const start = new Int32Array(this.size - total + 1);
    for (let node = 0; node < this.size; node++) {
      if (node !== this.root) start[this.parent[node] - total + 1]++;
    }
    for (let i = 1; i < start.length; i++) start[i] += start[i - 1];
    const next = start.slice();
    const child = new Int32Array(Math.max(0, this.size - 1));
    // By the first operation in each: counted, since there are many and numbers are small.
    const place = new Int32Array(total + 2);
    for (let node = 0; node < this.size; node++) place[first[node] + 1]++;
    for (let i = 1; i < place.length; i++) place[i] += place[i - 1];
    const ordered = new Int32Array(this.size);
    for (let node = 0; node < this.size; node++) ordered[place[first[node]]++] = node;
    for (let i = 0; i < this.size; i++) {
      const node = ordered[i];
      if (node !== this.root) child[next[this.parent[node] - total]++] = node;
    }
    return [start, child];
  }

  #walk(): void {
    const { operations, parameters, stale, marked, needed, routing } = this.data;
    let count = 0;
    const stack: [number, number, Int32Array][] = [[this.root, 0, this.children(this.root)]];
    while (stack.length > 0) {
      const top = stack[stack.length - 1];
      const [node, next, children] = top;
      if (next === 0) this.begin[node] = count;
      if (next === children.length) {
        this.end[node] = count;
        stack.pop();
        continue;
      }
      top[1] += 1;
      const child = children[next];
      this.depth[child] = this.depth[node] + 1;
      if (this.isScope(child)) stack.push([child, 0, this.children(child)]);
      else {
        this.order[count] = child;
        this.begin[child] = count;
        this.end[child] = ++count;
      }
    }
    if (!marked) this.needed.fill(Mark.Executed);
    for (let op = 0; op < operations; op++) {
      const isStale = stale[op] >= 0 ? 1 : 0;
      const marks = marked ? needed[op] : 0;
      const isUnseen = routing[op] && !this.showsRouting ? 1 : 0;
      if (!parameters[op] && !isStale && !marks && !isUnseen) continue;
      for (let at = op; at >= 0; at = this.parent[at]) {
        this.parameters[at] += parameters[op];
        this.stale[at] += isStale;
        this.needed[at] |= marks;
        this.unseen[at] += isUnseen;
      }
    }
  }
}

/** Lists turned round: for each target, those whose lists name it, each once and in order. */
function reversed(start: Int32Array, list: Int32Array, targets: number): [Int32Array, Int32Array] {
  const last = new Int32Array(targets).fill(-1);
  const begin = new Int32Array(targets + 1);
  for (let i = 0; i + 1 < start.length; i++) {
    for (let j = start[i]; j < start[i + 1]; j++) {
      if (last[list[j]] === i) continue;
      last[list[j]] = i;
      begin[list[j] + 1]++;
    }
  }
  for (let t = 0; t < targets; t++) begin[t + 1] += begin[t];
  const next = begin.slice();
  const found = new Int32Array(begin[targets]);
  last.fill(-1);
  for (let i = 0; i + 1 < start.length; i++) {
    for (let j = start[i]; j < start[i + 1]; j++) {
      if (last[list[j]] === i) continue;
      last[list[j]] = i;
      found[next[list[j]]++] = i;
    }
  }
  return [begin, found];
}
