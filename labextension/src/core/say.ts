// What a node or a whole graph is, in a line.

import { Hierarchy } from "./hierarchy.js";
import { Kind, Mark } from "./payload.js";
import { counted } from "./words.js";

export function say(tree: Hierarchy, node: number): string {
  const stale = tree.stale[node] > 0 ? ", stale" : "";
  const own = tree.isScope(node) ? tree.own(node) : node;
  if (own >= 0) return `${tree.type(own)}${stale}`;
  const series = tree.kind[node] === Kind.Series ? "series, " : "";
  return `${series}${counted(tree.count(node), "operation")}${stale}`;
}

export function summary(tree: Hierarchy): string {
  const parts = [counted(tree.data.operations, "operation")];
  if (tree.data.marked) {
    const needed = tree.data.needed.reduce((sum, marks) => sum + (marks & Mark.Executed), 0);
    parts[0] += `, ${needed.toLocaleString("en-US")} of them needed`;
  }
  if (tree.parameters[tree.root] > 0) parts.push(counted(tree.parameters[tree.root], "trainable parameter"));
  if (tree.stale[tree.root] > 0) parts.push(`${tree.stale[tree.root].toLocaleString("en-US")} stale`);
  return parts.join(" · ");
}
