// The edges between the members of one scope, and those that leave it: one for each pair, with the
// tensors that it carries.

import { Hierarchy } from "./hierarchy.js";

export interface Edge {
  /** The member that it leaves. */
  readonly source: number;
  readonly target: number;
  /** The distinct tensors that it carries. */
  readonly tensors: number[];
  /** How many operations wait for others along it. */
  controls: number;
  /** Whether it goes round: what it carries is there in the next iteration of a loop. */
  readonly round: boolean;
}

export interface ScopeEdges {
  readonly within: Edge[];
  /** How many tensors from outside each member takes. */
  readonly entering: Map<number, number>;
  /** How many of its tensors are taken outside. */
  readonly leaving: Map<number, number>;
}

/**
 * The edges of a scope.
 *
 * @param unseen operations that lie in what is set aside: what only they take leaves no scope, as
 *   else everything would, where there are gradients.
 */
export function scopeEdges(tree: Hierarchy, scope: number, unseen: Uint8Array): ScopeEdges {
  const { data, order } = tree;
  const members = tree.children(scope);
  const from = tree.begin[scope];
  const to = tree.end[scope];
  // The member that each operation of the scope lies in, by its place in the walk.
  const memberAt = new Int32Array(to - from);
  members.forEach((member, i) => memberAt.fill(i, tree.begin[member] - from, tree.end[member] - from));
  const memberOf = (op: number): number => {
    const place = tree.begin[op];
    return place >= from && place < to ? memberAt[place - from] : -1;
  };

  const found = new Map<number, Edge>();
  const edge = (a: number, b: number, round = false): Edge => {
    const key = (a * members.length + b) * 2 + Number(round);
    let known = found.get(key);
    if (!known) {
      known = { source: members[a], target: members[b], tensors: [], controls: 0, round };
      found.set(key, known);
    }
    return known;
  };
  const entering = new Map<number, number>();
  const leaving = new Map<number, number>();
  const add = (counts: Map<number, number>, member: number): void => {
    counts.set(member, (counts.get(member) ?? 0) + 1);
  };

  const carried = [new Int32Array(members.length).fill(-1), new Int32Array(members.length).fill(-1)];
  for (let place = from; place < to; place++) {
    const op = order[place];
    const a = memberAt[place - from];
    for (let t = data.outputStart[op]; t < data.outputStart[op + 1]; t++) {
      let leaves = false;
      for (let i = tree.wiredStart[t]; i < tree.wiredStart[t + 1]; i++) {
        const b = memberOf(tree.wired[i]);
        const round = data.round[tree.wired[i]];
        if (b < 0) leaves ||= !unseen[tree.wired[i]];
        else if (b !== a && carried[round][b] !== t) {
          carried[round][b] = t;
          edge(a, b, round === 1).tensors.push(t);
        }
      }
      if (leaves) add(leaving, members[a]);
    }
    for (let i = tree.wireStart[op]; i < tree.wireStart[op + 1]; i++) {
      if (memberOf(tree.producer[tree.wire[i]]) < 0) add(entering, members[a]);
    }
    for (let i = tree.waiterStart[op]; i < tree.waiterStart[op + 1]; i++) {
      const b = memberOf(tree.waiter[i]);
      if (b >= 0 && b !== a) edge(a, b).controls += 1;
    }
  }
  return { within: [...found.values()], entering, leaving };
}

/** The size of tensors in bytes, as far as it is known; whether it is more than that. */
export function carriedBytes(tree: Hierarchy, tensors: readonly number[]): { bytes: number; more: boolean } {
  let bytes = 0;
  let more = false;
  for (const tensor of tensors) {
    const size = tree.data.bytes[tensor];
    if (size >= 0) bytes += size;
    else more = true;
  }
  return { bytes, more };
}
