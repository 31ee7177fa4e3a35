// What is selected: a node, a tensor, or an edge of the picture, which may stand for many tensors;
// and what else that concerns.

import { Hierarchy } from "./hierarchy.js";

export type Selection =
  | { readonly kind: "node"; readonly node: number }
  | { readonly kind: "tensor"; readonly tensor: number }
  | { readonly kind: "edge"; readonly source: number; readonly target: number; readonly tensors: readonly number[] };

/** What stands out in the picture beside what is selected. */
export interface Focus {
  /** The nodes that are selected themselves. */
  readonly nodes: ReadonlySet<number>;
  /** Nodes shown that it is joined with. */
  readonly joined: ReadonlySet<number>;
  /** Pairs of shown nodes, from source to target, that it joins. */
  readonly links: readonly (readonly [number, number])[];
  /** Whether a line of the picture is part of it. */
  touches(ends: readonly number[], tensors: readonly number[]): boolean;
}

export const NO_FOCUS: Focus = { nodes: new Set(), joined: new Set(), links: [], touches: () => false };

export function nodeSelected(selection: Selection | null): number | null {
  return selection?.kind === "node" ? selection.node : null;
}

/** An edge of one tensor is that tensor. */
export function edgeSelection(source: number, target: number, tensors: readonly number[]): Selection {
  return tensors.length === 1 ? { kind: "tensor", tensor: tensors[0] } : { kind: "edge", source, target, tensors };
}

/** The node that stands for a selection where only nodes count, as in the tree. */
export function nodeOf(tree: Hierarchy, selection: Selection): number {
  if (selection.kind === "node") return selection.node;
  return selection.kind === "tensor" ? tree.producer[selection.tensor] : selection.source;
}

/** The same selection in a later state of the graph; null if it is gone. */
export function carriedOver(before: Hierarchy, after: Hierarchy, selection: Selection | null): Selection | null {
  if (!selection) return null;
  const node = (old: number): number | undefined => after.find(before.key(old));
  if (selection.kind === "node") {
    const found = node(selection.node);
    return found === undefined ? null : { kind: "node", node: found };
  }
  const tensor = (old: number): number[] => {
    const producer = before.producer[old];
    const found = node(producer);
    if (found === undefined) return [];
    const place = after.data.outputStart[found] + old - before.data.outputStart[producer];
    return place < after.data.outputStart[found + 1] ? [place] : [];
  };
  if (selection.kind === "tensor") {
    const [found] = tensor(selection.tensor);
    return found === undefined ? null : { kind: "tensor", tensor: found };
  }
  const [source, target] = [node(selection.source), node(selection.target)];
  const tensors = selection.tensors.flatMap(tensor);
  return source === undefined || target === undefined || tensors.length === 0 ? null : edgeSelection(source, target, tensors);
}

export function focusOf(tree: Hierarchy, opened: ReadonlySet<number>, selection: Selection | null): Focus {
  if (!selection) return NO_FOCUS;
  const shown = (node: number): number => tree.shown(node, opened);
  if (selection.kind === "edge") {
    const { source, target } = selection;
    const [from, to] = [shown(source), shown(target)];
    return {
      nodes: new Set(),
      joined: new Set([from, to]),
      links: [[from, to]],
      touches: (ends) => ends[0] === source && ends[1] === target,
    };
  }
  if (selection.kind === "tensor") {
    const { tensor } = selection;
    const from = shown(tree.producer[tensor]);
    const takers = tree.wired.subarray(tree.wiredStart[tensor], tree.wiredStart[tensor + 1]);
    const to = new Set([...takers].map(shown).filter((node) => node !== from));
    return {
      nodes: new Set(),
      joined: new Set([from, ...to]),
      links: [...to].map((node) => [from, node] as const),
      touches: (_, tensors) => tensors.includes(tensor),
    };
  }
  const { node } = selection;
  const { before, after } = neighbours(tree, node);
  const [sources, targets] = [new Set([...before].map(shown)), new Set([...after].map(shown))];
  return {
    nodes: new Set([node]),
    joined: new Set([...sources, ...targets]),
    links: [...[...sources].map((each) => [each, node] as const), ...[...targets].map((each) => [node, each] as const)],
    touches: (ends) => ends.includes(node),
  };
}

/** The operations that feed a node from outside, and those outside that it feeds. */
export function neighbours(tree: Hierarchy, node: number): { before: Set<number>; after: Set<number> } {
  const { data } = tree;
  const [from, to] = [tree.begin[node], tree.end[node]];
  const inside = (op: number): boolean => tree.begin[op] >= from && tree.begin[op] < to;
  const before = new Set<number>();
  const after = new Set<number>();
  for (const op of tree.order.subarray(from, to)) {
    for (let i = tree.wireStart[op]; i < tree.wireStart[op + 1]; i++) {
      const producer = tree.producer[tree.wire[i]];
      if (!inside(producer)) before.add(producer);
    }
    for (let t = data.outputStart[op]; t < data.outputStart[op + 1]; t++) {
      for (let i = tree.wiredStart[t]; i < tree.wiredStart[t + 1]; i++) {
        if (!inside(tree.wired[i])) after.add(tree.wired[i]);
      }
    }
  }
  return { before, after };
}
