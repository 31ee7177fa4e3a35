// Small graphs for tests, in the form in which pages get them.

import { GraphData, Kind } from "../src/core/payload.js";

export interface Op {
  name: string;
  type?: string;
  variable?: string;
  /** Names of operations: their first outputs are taken. */
  inputs?: string[];
  controls?: string[];
  parameters?: number;
  stale?: string;
  marks?: number;
  /** Names of operations that lines come from, where these are not the inputs. */
  wires?: string[];
  routing?: boolean;
  round?: boolean;
  /** The scope that is the body of what it calls. */
  body?: string;
}

/** The graph of operations in the order of construction; `templates` are those of scopes by name. */
export function graphOf(ops: Op[], templates: Record<string, number> = {}, kinds: Record<string, Kind> = {}): GraphData {
  const strings: string[] = [];
  const text = (value: string): number => {
    const known = strings.indexOf(value);
    return known >= 0 ? known : strings.push(value) - 1;
  };
  const total = ops.length;
  const scopes = new Map<string, number>([["", total]]);
  const labels = [""];
  const scopeParents = [-1];
  const scope = (path: string): number => {
    const known = scopes.get(path);
    if (known !== undefined) return known;
    const at = path.lastIndexOf("/");
    const parent = scope(at < 0 ? "" : path.slice(0, at));
    const made = total + labels.length;
    scopes.set(path, made);
    labels.push(path.slice(at + 1));
    scopeParents.push(parent);
    return made;
  };
  const outer = (name: string): string => name.slice(0, Math.max(0, name.lastIndexOf("/")));
  const parents = ops.map(({ name }) => scope(outer(name)));
  const own = new Int32Array(labels.length).fill(-1);
  ops.forEach(({ name }, i) => {
    const taken = scopes.get(name);
    if (taken === undefined) return;
    parents[i] = taken;
    own[taken - total] = i;
  });
  const size = total + labels.length;
  const number = new Map(ops.map(({ name }, i) => [name, i]));
  const lists = (each: (op: Op) => string[] | undefined): [Int32Array, Int32Array] => {
    const start = [0];
    const flat: number[] = [];
    for (const op of ops) {
      for (const name of each(op) ?? []) flat.push(number.get(name)!);
      start.push(flat.length);
    }
    return [Int32Array.from(start), Int32Array.from(flat)];
  };
  const [inputStart, input] = lists((op) => op.inputs);
  const [wireStart, wire] = lists((op) => op.wires ?? op.inputs);
  const [controlStart, control] = lists((op) => op.controls);
  const names = [...scopes.keys()];
  const fill = (value: string): Int32Array => new Int32Array(total).fill(text(value));
  return {
    operations: total,
    marked: ops.some((op) => op.marks !== undefined),
    strings,
    label: Int32Array.from([...ops.map(({ name }) => text(name.slice(name.lastIndexOf("/") + 1))), ...labels.map(text)]),
    parent: Int32Array.from([...parents, ...scopeParents]),
    template: Int32Array.from([...ops.map((op) => text(op.type ?? "Op")), ...names.map((name, i) => templates[name] ?? 1000 + i)]),
    aside: new Uint8Array(size),
    kind: new Uint8Array(size).map((_, i) => (i < total ? (ops[i].body ? Kind.Call : Kind.Plain) : (kinds[names[i - total]] ?? Kind.Scope))),
    own,
    named: new Int32Array(0),
    about: new Int32Array(0),
    body: Int32Array.from(ops.map((op) => (op.body ? scopes.get(op.body)! : -1))),
    routing: Uint8Array.from(ops.map((op) => (op.routing ? 1 : 0))),
    round: Uint8Array.from(ops.map((op) => (op.round ? 1 : 0))),
    wireStart,
    wire,
    type: Int32Array.from(ops.map((op) => text(op.type ?? "Op"))),
    variable: Int32Array.from(ops.map((op) => text(op.variable ?? ""))),
    place: fill("cell [1], line 1"),
    source: fill("source()"),
    device: fill(""),
    parameters: Float64Array.from(ops.map((op) => op.parameters ?? 0)),
    stale: Int32Array.from(ops.map((op) => (op.stale ? text(op.stale) : -1))),
    retired: new Uint8Array(total),
    needed: Uint8Array.from(ops.map((op) => op.marks ?? 0)),
    inputStart,
    input,
    controlStart,
    control,
    outputStart: new Int32Array(total + 1).map((_, i) => i),
    attributeStart: new Int32Array(total + 1),
    attributeName: new Int32Array(0),
    attributeValue: new Int32Array(0),
    spec: fill("float32 [2, 3]"),
    bytes: new Float64Array(total).fill(24),
    overlay: null,
  };
}

/** A chain of scopes of two operations each. */
export function chainOf(count: number): GraphData {
  const ops: Op[] = [{ name: "x", type: "Placeholder" }];
  const templates: Record<string, number> = {};
  for (let i = 0; i < count; i++) {
    const before = i === 0 ? "x" : `layer_${i - 1}/relu`;
    ops.push({ name: `layer_${i}/matmul`, type: "MatMul", inputs: [before], parameters: 10 });
    ops.push({ name: `layer_${i}/relu`, type: "Relu", inputs: [`layer_${i}/matmul`] });
    templates[`layer_${i}`] = 7;
  }
  return graphOf(ops, templates);
}
