// Frames as `flowbook/widgets/packing.py` lays them out, unpacked.

type Column = Float64Array | Int32Array | Uint8Array;

/** A header, and columns of numbers. */
export function packed(header: object, columns: Record<string, Column>): ArrayBuffer {
  const places: Record<string, [string, number, number]> = {};
  const parts: Uint8Array[] = [];
  let offset = 0;
  for (const [name, values] of Object.entries(columns)) {
    const type = values instanceof Float64Array ? "float64" : values instanceof Int32Array ? "int32" : "uint8";
    places[name] = [type, offset, values.length];
    const padded = new Uint8Array(Math.ceil(values.byteLength / 8) * 8);
    padded.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    parts.push(padded);
    offset += padded.length;
  }
  const encoded = new TextEncoder().encode(JSON.stringify({ ...header, columns: places }));
  const start = Math.ceil((4 + encoded.length) / 8) * 8;
  const found = new Uint8Array(start + offset);
  new DataView(found.buffer).setUint32(0, encoded.length, true);
  found.set(encoded, 4);
  let at = start;
  for (const part of parts) {
    found.set(part, at);
    at += part.length;
  }
  return found.buffer;
}
