// What a node looks like closed: its words, and so its size.

import { Hierarchy } from "./hierarchy.js";
import { textWidth } from "./letters.js";
import { Kind } from "./payload.js";
import { beside, counted, grouped, shortened, shownText } from "./words.js";

export interface Face {
  readonly title: string;
  readonly detail: string;
  readonly width: number;
  readonly height: number;
}

export const TITLE_SIZE = 12.5;
export const DETAIL_SIZE = 10.5;
export const LABEL_SIZE = 10;
/** The bar that says what of a node has which colour: how thick, how far from its sides and bottom. */
export const BAR = 3.5;
export const BAR_INSET = 5;
export const BAR_UP = 3.2;

const LONGEST = 40;

export function faceOf(tree: Hierarchy, node: number): Face {
  const title = `${signOf(tree, node)}${shortened(shownText(beside(tree.variable(node), tree.label(node))), LONGEST) || "(no name)"}`;
  const detail = shortened(shownText(detailOf(tree, node)), LONGEST);
  const stacked = isOpenable(tree, node) ? 14 : 0;
  const words = Math.max(textWidth(title, TITLE_SIZE) + stacked, textWidth(detail, DETAIL_SIZE));
  const isSmall = tree.kind[node] === Kind.Constant || tree.kind[node] === Kind.Role;
  return {
    title,
    detail,
    width: Math.ceil(Math.max(isSmall ? 30 : 52, words + (isSmall ? 16 : 24))),
    height: detail ? 40 : isSmall ? 22 : 28,
  };
}

/** A sign of what it is, before its name. */
function signOf(tree: Hierarchy, node: number): string {
  if (tree.kind[node] === Kind.Loop) return "↻ ";
  if (tree.kind[node] === Kind.Function || tree.kind[node] === Kind.Call) return "ƒ ";
  return tree.kind[node] === Kind.Branch ? "◇ " : "";
}

/** Whether there is anything to see inside. */
export function isOpenable(tree: Hierarchy, node: number): boolean {
  return tree.isScope(node) && tree.children(node).some((child) => !tree.isHidden(child));
}

function detailOf(tree: Hierarchy, node: number): string {
  switch (tree.kind[node]) {
    case Kind.Scope:
    case Kind.Part:
      return counted(tree.count(node) - tree.unseen[node], "operation");
    case Kind.Loop:
    case Kind.Branch:
    case Kind.Function:
      return tree.ran[tree.name(node)] || tree.about(node) || counted(tree.count(node) - tree.unseen[node], "operation");
    case Kind.Call:
      if (tree.isScope(node)) return tree.about(node);
      return operationDetail(tree, node, Kind.Call);
    case Kind.Series:
      return `${grouped(tree.children(node).length)} alike`;
    case Kind.Constant:
    case Kind.Role:
      return "";
    default: {
      const op = tree.isScope(node) ? tree.own(node) : node;
      return operationDetail(tree, op, tree.kind[node]);
    }
  }
}

/** The type where the name does not say it already, and the first shape. */
function operationDetail(tree: Hierarchy, op: number, kind: number): string {
  if (tree.body(op) >= 0) return `call of ${tree.label(tree.body(op))}`;
  const type = tree.type(op);
  const named = tree.label(op).replace(/(_\d+)?$/, "") === type;
  const parts = named || kind === Kind.Input || kind === Kind.Variable ? [] : [type];
  const { data } = tree;
  if (kind === Kind.Variable) parts.push(variableShape(tree, op));
  else if (data.outputStart[op] < data.outputStart[op + 1]) {
    const spec = tree.spec(data.outputStart[op]);
    parts.push(kind === Kind.Input ? spec : spec.slice(spec.indexOf(" ") + 1));
  }
  return parts.join(" ");
}

function variableShape(tree: Hierarchy, op: number): string {
  const { data } = tree;
  const found = new Map<string, string>();
  for (let i = data.attributeStart[op]; i < data.attributeStart[op + 1]; i++) {
    found.set(data.strings[data.attributeName[i]], data.strings[data.attributeValue[i]]);
  }
  return [found.get("dtype"), found.get("shape")].filter(Boolean).join(" ");
}
