// Bytes of a file by what they belong to.

import { KINDS } from "./colours.js";

export type Extent = [from: number, to: number, kind: number, tensor: number | null, part: number | null, label: string | null];

export interface ByteMap {
  file: string | null;
  len: number;
  ends: number;
  from: number;
  to: number;
  kinds: string[];
  totals: number[];
  extents: Extent[];
  cells: { kind: number[]; kinds: number[]; tensor: number[] } | null;
}

/** Colours alone are not enough: what nobody claims is hatched, what several claim is crossed. */
export function hatch(context: CanvasRenderingContext2D, kind: number): CanvasPattern | string {
  if (kind < 3 || kind === OTHER) return KINDS[kind];
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const inside = tile.getContext("2d")!;
  inside.fillStyle = KINDS[kind];
  inside.fillRect(0, 0, 8, 8);
  inside.strokeStyle = "#000";
  inside.lineWidth = 1.5;
  inside.beginPath();
  inside.moveTo(-2, 10);
  inside.lineTo(10, -2);
  if (kind === 4) {
    inside.moveTo(-2, -2);
    inside.lineTo(10, 10);
  }
  inside.stroke();
  return context.createPattern(tile, "repeat") ?? KINDS[kind];
}

/** Data of neighbouring tensors alternates, so that they can be told apart. */
const OTHER = 6;

/** The kind at each of some places of the map; what is not claimed is 5, data of every other tensor 6. */
export function kindsAt(map: ByteMap, count: number): Uint8Array {
  const found = new Uint8Array(count).fill(5);
  const span = Math.max(1, map.to - map.from);
  if (map.cells) {
    for (let n = 0; n < count; n += 1) {
      const cell = Math.floor((n * map.cells.kind.length) / count);
      found[n] = rare(map.cells.kinds[cell], map.cells.kind[cell], map.cells.tensor[cell]);
    }
    return found;
  }
  let odd = false;
  for (const [from, to, plain] of map.extents) {
    if (plain === 1) odd = !odd;
    const kind = plain === 1 && odd ? OTHER : plain;
    const first = Math.floor(((Math.max(from, map.from) - map.from) / span) * count);
    const last = Math.max(first + 1, Math.ceil(((Math.min(to, map.to) - map.from) / span) * count));
    for (let n = first; n < last && n < count; n += 1) {
      // What is rare must not vanish below what is large.
      if (found[n] === 5 || (kind >= 3 && kind < OTHER) || (kind === 0 && found[n] !== 0)) found[n] = kind;
    }
  }
  return found;
}

function rare(kinds: number, most: number, tensor: number): number {
  if (kinds & 16) return 4;
  if (kinds & 8) return 3;
  return most === 1 && tensor % 2 ? OTHER : most;
}

export function drawStrip(context: CanvasRenderingContext2D, wide: number, high: number, map: ByteMap): void {
  const kinds = kindsAt(map, wide);
  let from = 0;
  for (let x = 1; x <= wide; x += 1) {
    if (x < wide && kinds[x] === kinds[from]) continue;
    context.fillStyle = hatch(context, kinds[from]);
    context.fillRect(from, 0, x - from, high);
    from = x;
  }
}
