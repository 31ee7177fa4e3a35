// What a node, an edge or a whole graph is, in a line.

import { Hierarchy } from "./hierarchy.js";
import { sayCrossing } from "./overlay.js";
import { Kind, Mark } from "./payload.js";
import { Box, Stroke, edgeLabel } from "./scene.js";
import { counted, grouped, shortened, shownText } from "./words.js";

const BLOCKS: Partial<Record<number, string>> = {
  [Kind.Loop]: "loop",
  [Kind.Branch]: "branch",
  [Kind.Part]: "part",
  [Kind.Role]: "values",
  [Kind.Function]: "function",
  [Kind.Call]: "call of a template",
};

export function say(tree: Hierarchy, node: number): string {
  const coloured = tree.coloured(node);
  const more = (coloured && `, ${coloured}`) + (tree.stale[node] > 0 ? ", stale" : "");
  const own = tree.isScope(node) ? tree.own(node) : node;
  if (own >= 0) return `${tree.body(own) >= 0 ? `call of ${tree.name(tree.body(own))}` : tree.type(own)}${more}`;
  const kind = BLOCKS[tree.kind[node]];
  if (kind) {
    const ran = tree.ran[tree.name(node)];
    return [kind, ...(ran ? [ran] : []), ...(tree.unseen[node] < tree.count(node) ? [counted(tree.count(node) - tree.unseen[node], "operation")] : [])].join(", ") + more;
  }
  const series = tree.kind[node] === Kind.Series ? "series, " : "";
  return `${series}${counted(tree.count(node), "operation")}${more}`;
}

export function summary(tree: Hierarchy): string {
  const parts = [counted(tree.data.operations, "operation")];
  if (tree.data.marked) {
    const needed = tree.data.needed.reduce((sum, marks) => sum + (marks & Mark.Executed), 0);
    parts[0] += `, ${grouped(needed)} of them needed`;
  }
  if (tree.parameters[tree.root] > 0) parts.push(counted(tree.parameters[tree.root], "trainable parameter"));
  if (tree.stale[tree.root] > 0) parts.push(`${grouped(tree.stale[tree.root])} stale`);
  return parts.join(" · ");
}

/** A node or an edge by its name, and what it is. */
export function sayFound(tree: Hierarchy, found: Box | Stroke): string {
  const short = (name: string): string => shortened(shownText(name), 300);
  const name = (node: number): string => short(tree.called(node));
  if ("node" in found) return `${name(found.node)}\n${say(tree, found.node)}`;
  const { source, target, tensors } = found.edge!;
  const what = tensors.length === 1 ? short(tree.tensorCalled(tensors[0])) : `${name(source)} → ${name(target)}`;
  const crossing = found.crossing ? `\n${sayCrossing(found.crossing)}` : "";
  return `${what}\n${edgeLabel(tree, found.edge!) || "control edge"}${crossing}`;
}
