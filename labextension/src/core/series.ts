// Series on request: members of one scope that are alike and numbered (`layer_1`, `layer_2`, ...)
// put into a scope of their own.

import { Hierarchy } from "./hierarchy.js";
import { GraphData, Kind } from "./payload.js";

const LEAST = 4;
const NUMBERED = /^(.*?)_?(\d+)$/;

/** The tree with its series as scopes. */
export function withSeries(data: GraphData, showsRouting = false): Hierarchy {
  const plain = new Hierarchy(data);
  const parent = Array.from(data.parent);
  const template = Array.from(data.template);
  const labels: string[] = [];
  const fresh = data.template.reduce((most, each) => Math.max(most, each), 0) + 1;
  for (let scope = data.operations; scope < data.parent.length; scope++) {
    const series = new Map<string, number[]>();
    for (const child of plain.children(scope)) {
      if (plain.kind[child] === Kind.Role || plain.kind[child] === Kind.Part) continue;
      const label = plain.label(child);
      const base = NUMBERED.exec(label)?.[1] ?? label;
      const key = JSON.stringify([base, data.template[child], plain.isScope(child)]);
      const members = series.get(key);
      if (members) members.push(child);
      else series.set(key, [child]);
    }
    if (series.size < 2) continue;
    for (const members of series.values()) {
      if (members.length < LEAST) continue;
      const made = parent.length;
      parent.push(scope);
      template.push(fresh + labels.length);
      labels.push(`${plain.label(members[0])} … ${plain.label(members[members.length - 1])}`);
      for (const member of members) parent[member] = made;
    }
  }
  const kind = new Uint8Array(parent.length).fill(Kind.Series);
  kind.set(data.kind);
  const aside = new Uint8Array(parent.length);
  aside.set(data.aside);
  return new Hierarchy(data, Int32Array.from(parent), kind, Int32Array.from(template), aside, labels, showsRouting);
}
