// Reads the graph that `flowbook/widgets/graphs/payload.py` wrote: texts once, and columns of numbers.
//
// Nodes are numbered: operations first, in the order of construction; then the scopes, the root
// before all others.

import { OverlayData, OverlayHeader, overlayOf } from "./overlay.js";
import { unpacked } from "./packing.js";

export const FORMAT = 3;

export enum Kind {
  Plain,
  Scope,
  Variable,
  Input,
  Constant,
  /** An operation beside the constants made for its arguments. */
  Arguments,
  /** Members of one scope that are alike and numbered: made here, on request. */
  Series,
  /** A loop, in which its parts lie, and what plays a role in it: its variables. */
  Loop,
  /** A branch, in which its sides lie, and what plays a role in it: its predicate, its results. */
  Branch,
  Part,
  Role,
  /** The body of a function, which its calls do not show once more. */
  Function,
  /** A call of a function, which leads to the body. */
  Call,
}

export enum Mark {
  Executed = 1,
  Fed = 2,
  Fetched = 4,
}

export interface GraphData {
  readonly operations: number;
  /** Whether some operations stand out, as those that a fetch needs do. */
  readonly marked: boolean;
  readonly strings: readonly string[];
  // Of every node.
  readonly label: Int32Array;
  readonly parent: Int32Array;
  readonly template: Int32Array;
  readonly aside: Uint8Array;
  readonly kind: Uint8Array;
  /** The whole name where that is not made of the labels around, or -1; empty where there is no such. */
  readonly named: Int32Array;
  // Of every scope: the operation of its own name, or -1.
  readonly own: Int32Array;
  /** More about it, or -1; empty where there is nothing. */
  readonly about: Int32Array;
  // Of every operation.
  readonly type: Int32Array;
  /** The Python variable that has its value, where that says what its name does not; or an empty text. */
  readonly variable: Int32Array;
  readonly place: Int32Array;
  readonly source: Int32Array;
  readonly device: Int32Array;
  readonly parameters: Float64Array;
  readonly stale: Int32Array;
  readonly retired: Uint8Array;
  /** Of every node the scope that is the body of what it calls, or -1; empty where nothing is called. */
  readonly body: Int32Array;
  /** Whether it only routes values, between the parts of loops and branches. */
  readonly routing: Uint8Array;
  /** Whether lines to it go round, to the next iteration of a loop. */
  readonly round: Uint8Array;
  /** What a run needs: the sum of `Mark`s; empty where nothing is marked. */
  readonly needed: Uint8Array;
  // Lists: those of operation i are in [start[i], start[i + 1]).
  readonly inputStart: Int32Array;
  readonly input: Int32Array;
  /** The tensors that lines come from, where what only routes values is not shown. */
  readonly wireStart: Int32Array;
  readonly wire: Int32Array;
  readonly controlStart: Int32Array;
  readonly control: Int32Array;
  readonly outputStart: Int32Array;
  readonly attributeStart: Int32Array;
  readonly attributeName: Int32Array;
  readonly attributeValue: Int32Array;
  // Of every tensor, in the order of its operation and port.
  readonly spec: Int32Array;
  readonly bytes: Float64Array;
  /** What is laid over the picture, if anything is. */
  readonly overlay: OverlayData | null;
}

interface Header {
  format: number;
  operations: number;
  marked: boolean;
  strings: string[];
  overlay?: OverlayHeader;
}

/** Read unpacked bytes. */
export function decode(buffer: ArrayBuffer): GraphData {
  const { header, columns } = unpacked<Header>(buffer);
  if (header.format !== FORMAT) {
    throw new Error(`the graph has format ${header.format}, this page reads ${FORMAT}: reload it`);
  }
  return {
    needed: new Uint8Array(0),
    named: new Int32Array(0),
    about: new Int32Array(0),
    body: new Int32Array(0),
    routing: new Uint8Array(header.operations),
    round: new Uint8Array(header.operations),
    wireStart: columns["inputStart"],
    wire: columns["input"],
    ...columns,
    operations: header.operations,
    marked: header.marked,
    strings: header.strings,
    overlay: header.overlay ? overlayOf(header.overlay, columns) : null,
  } as unknown as GraphData;
}
