// The Python that fetches a tensor, or feeds it: with the placeholders that such a run really needs.

import { Hierarchy } from "./hierarchy.js";
import { Kind, Mark } from "./payload.js";

const MOST_FETCHES = 3;
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu;

/** What a run fetches: tensors by their numbers, and operations that have none. */
interface Fetches {
  readonly tensors: readonly number[];
  readonly operations: readonly number[];
}

export function fetchCode(tree: Hierarchy, tensor: number): string {
  return code(tree, { tensors: [tensor], operations: [] }, []);
}

/** A run of what the view fetches, or else of what takes the tensor, with the tensor fed; or null. */
export function feedCode(tree: Hierarchy, tensor: number): string | null {
  const operations = tree.data.marked ? fetched(tree) : takersOf(tree, tensor).slice(0, MOST_FETCHES);
  if (operations.length === 0) return null;
  const { outputStart } = tree.data;
  const hasOutput = (op: number): boolean => outputStart[op] < outputStart[op + 1];
  const fetches = {
    tensors: operations.filter(hasOutput).map((op) => outputStart[op]),
    operations: operations.filter((op) => !hasOutput(op)),
  };
  return code(tree, fetches, [tensor]);
}

/** What takes a tensor; of gradients and the like, which are set aside, only where nothing else does. */
function takersOf(tree: Hierarchy, tensor: number): number[] {
  const takers = [...tree.taker.subarray(tree.takerStart[tensor], tree.takerStart[tensor + 1])];
  const beside = takers.filter((op) => tree.aside[op] === 0 && tree.around(op).every((scope) => tree.aside[scope] === 0));
  return beside.length > 0 ? beside : takers;
}

function fetched(tree: Hierarchy): number[] {
  const found: number[] = [];
  tree.data.needed.forEach((marks, op) => {
    if (marks & Mark.Fetched) found.push(op);
  });
  return found;
}

/** The placeholders that a run comes upon, if some tensors are fed. */
export function placeholders(tree: Hierarchy, fetches: Fetches, fed: readonly number[]): number[] {
  const { data } = tree;
  const given = new Set(fed);
  const found: number[] = [];
  const seen = new Uint8Array(data.operations);
  const stack: number[] = [];
  const reach = (op: number): void => {
    if (seen[op]) return;
    seen[op] = 1;
    stack.push(op);
  };
  const take = (tensor: number): void => {
    if (!given.has(tensor)) reach(tree.producer[tensor]);
  };
  fetches.tensors.forEach(take);
  fetches.operations.forEach(reach);
  for (let op = stack.pop(); op !== undefined; op = stack.pop()) {
    if (tree.kind[op] === Kind.Input) found.push(data.outputStart[op]);
    for (let i = data.inputStart[op]; i < data.inputStart[op + 1]; i++) take(data.input[i]);
    for (let i = data.controlStart[op]; i < data.controlStart[op + 1]; i++) reach(data.control[i]);
  }
  return found.sort((a, b) => a - b);
}

function code(tree: Hierarchy, fetches: Fetches, fed: readonly number[]): string {
  const names = [
    ...fetches.tensors.map((tensor) => quoted(tree.tensorName(tensor))),
    ...fetches.operations.map((op) => quoted(tree.name(op))),
  ];
  const what = names.length === 1 ? names[0] : `[${names.join(", ")}]`;
  const feeds = [...fed, ...placeholders(tree, fetches, fed)];
  if (feeds.length === 0) return `sess.run(${what})`;
  const lines = feeds.map((tensor) => `    ${quoted(tree.tensorName(tensor))}: ...,  # ${escaped(tree.spec(tensor))}\n`);
  return `sess.run(${what}, {\n${lines.join("")}})`;
}

/** A string of Python's, in which nothing is hidden. */
function quoted(text: string): string {
  return `"${escaped(text.replace(/[\\"]/g, "\\$&"))}"`;
}

function escaped(text: string): string {
  return text.replace(UNSEEN, (mark) => {
    const point = mark.codePointAt(0)!;
    return point > 0xffff ? `\\U${point.toString(16).padStart(8, "0")}` : `\\u${point.toString(16).padStart(4, "0")}`;
  });
}
