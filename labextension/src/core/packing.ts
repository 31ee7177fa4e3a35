// Reads what `flowbook/widgets/packing.py` wrote: a header, and columns of numbers.

export interface Packed<Header> {
  readonly header: Header;
  readonly columns: Readonly<Record<string, Int32Array | Float64Array | Uint8Array>>;
}

/** Unpack a zlib stream. */
export async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return await new Response(stream).arrayBuffer();
}

/** Read unpacked bytes. */
export function unpacked<Header>(buffer: ArrayBuffer): Packed<Header> {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length))) as Header & {
    columns: Record<string, [string, number, number]>;
  };
  const start = Math.ceil((4 + length) / 8) * 8;
  const columns: Record<string, Int32Array | Float64Array | Uint8Array> = {};
  for (const [name, [type, offset, count]] of Object.entries(header.columns)) {
    const at = start + offset;
    if (type === "int32") columns[name] = new Int32Array(buffer, at, count);
    else if (type === "float64") columns[name] = new Float64Array(buffer, at, count);
    else if (type === "uint8") columns[name] = new Uint8Array(buffer, at, count);
    else throw new Error(`column ${name} is of unknown type ${type}`);
  }
  return { header, columns };
}
