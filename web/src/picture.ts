// Pictures of tensors: asking for them, and drawing them.

import { Columns, work } from "./ask.js";
import { NAN, NEGATIVE, POSITIVE, type Map as ColourMap, place, table } from "./colours.js";
import type { CellValue } from "./state.js";

export interface Head {
  done: number;
  of: number;
  finished: boolean;
  rows: [number, number];
  cols: [number, number];
  size: [number, number];
  lines: [number, number];
  by_columns: boolean;
  stride: number;
  exact: boolean;
  zeros: number;
  finite: number;
  nans: number;
  positive_infinities: number;
  negative_infinities: number;
  min: number | string | null;
  max: number | string | null;
  mean: number | string | null;
}

export class Picture {
  readonly head: Head;
  readonly min: Float64Array;
  readonly max: Float64Array;
  readonly mean: Float64Array;
  readonly finite: Uint32Array;
  readonly nans: Uint32Array;
  readonly positive: Uint32Array;
  readonly negative: Uint32Array;
  readonly finished: boolean;

  constructor(buffer: ArrayBuffer) {
    const columns = new Columns<Head>(buffer);
    this.head = columns.head;
    this.min = columns.f64("min");
    this.max = columns.f64("max");
    this.mean = columns.f64("mean");
    this.finite = columns.u32("finite");
    this.nans = columns.u32("nans");
    this.positive = columns.u32("positive");
    this.negative = columns.u32("negative");
    this.finished = this.head.finished;
  }

  get high(): number {
    return this.head.size[0];
  }

  get wide(): number {
    return this.head.size[1];
  }

  /** Elements below a cell, about. */
  get perCell(): number {
    const { rows, cols } = this.head;
    return ((rows[1] - rows[0]) * (cols[1] - cols[0])) / Math.max(1, this.high * this.wide);
  }

  /** Numbers that were looked at. */
  get numbers(): number {
    const { finite, nans, positive_infinities, negative_infinities } = this.head;
    return finite + nans + positive_infinities + negative_infinities;
  }

  /** Means of noise vanish: of many elements the one farthest from 0 says more. */
  valueOf(cell: CellValue): CellValue {
    return cell === "auto" ? (this.perCell > 16 ? "extreme" : "mean") : cell;
  }

  values(cell: CellValue): Float64Array {
    const wanted = this.valueOf(cell);
    if (wanted === "min") return this.min;
    if (wanted === "max") return this.max;
    if (wanted === "mean") return this.mean;
    const values = new Float64Array(this.min.length);
    for (let n = 0; n < values.length; n += 1) values[n] = -this.min[n] > this.max[n] ? this.min[n] : this.max[n];
    return values;
  }

  /** The rows and columns of a cell. */
  range(row: number, column: number): { r: [number, number]; c: [number, number] } {
    const side = (at: number, cells: number, [from, to]: [number, number]): [number, number] => [
      from + Math.ceil((at * (to - from)) / cells),
      from + Math.ceil(((at + 1) * (to - from)) / cells),
    ];
    return { r: side(row, this.high, this.head.rows), c: side(column, this.wide, this.head.cols) };
  }

  notFinite(n: number): number {
    return this.nans.length ? this.nans[n] + this.positive[n] + this.negative[n] : 0;
  }

  get hasBad(): boolean {
    return this.nans.length > 0;
  }
}

/** From the 1st to the 99th percentile of what is shown; symmetric where there are both signs. */
export function domainOf(values: Float64Array): [number, number] {
  const step = Math.max(1, Math.floor(values.length / 16384));
  const sample: number[] = [];
  for (let n = 0; n < values.length; n += step) if (Number.isFinite(values[n])) sample.push(values[n]);
  if (!sample.length) return [0, 1];
  sample.sort((a, b) => a - b);
  const of = (part: number) => sample[Math.min(sample.length - 1, Math.max(0, Math.round(part * (sample.length - 1))))];
  let [low, high] = [of(0.01), of(0.99)];
  if (low === high) [low, high] = [sample[0], sample[sample.length - 1]];
  if (low < 0 && high > 0) {
    const most = Math.max(-low, high);
    return [-most, most];
  }
  return low === high ? [low - 0.5, low + 0.5] : [low, high];
}

export function usualMap([low, high]: readonly [number, number]): ColourMap {
  return low < 0 && high > 0 ? "rdbu" : "viridis";
}

export interface Look {
  cell: CellValue;
  domain: readonly [number, number];
  map: ColourMap;
}

/** Draws a picture into all of a canvas, which has at least a pixel for each cell. */
export function draw(canvas: HTMLCanvasElement, picture: Picture, look: Look, background: [number, number, number]): void {
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  const { width, height } = canvas;
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const colours = table(look.map);
  const values = picture.values(look.cell);
  const { high, wide } = picture;
  const packed = ([r, g, b]: [number, number, number]) => (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
  const row = new Uint32Array(wide);
  let drawn = -1;
  for (let y = 0; y < height; y += 1) {
    const at = Math.floor((y * high) / height);
    if (at !== drawn) {
      for (let x = 0; x < wide; x += 1) {
        const value = values[at * wide + x];
        if (Number.isNaN(value)) row[x] = packed(background);
        else {
          const n = place(value, look.domain) * 3;
          row[x] = packed([colours[n], colours[n + 1], colours[n + 2]]);
        }
      }
      drawn = at;
    }
    const line = y * width;
    for (let x = 0; x < width; x += 1) pixels[line + x] = row[Math.floor((x * wide) / width)];
  }
  context.putImageData(image, 0, 0);
  if (picture.hasBad) mark(context, picture, width, height);
}

/** What is not finite is drawn at least three pixels large, with an outline: nobody shall overlook it. */
function mark(context: CanvasRenderingContext2D, picture: Picture, width: number, height: number): void {
  const { high, wide } = picture;
  const bad: [number, number, number, number, string][] = [];
  const colour = ([r, g, b]: [number, number, number]) => `rgb(${r},${g},${b})`;
  for (let n = 0; n < high * wide; n += 1) {
    if (!picture.notFinite(n)) continue;
    const kind = picture.nans[n] ? NAN : picture.positive[n] ? POSITIVE : NEGATIVE;
    const [row, column] = [Math.floor(n / wide), n % wide];
    const x0 = Math.ceil((column * width) / wide);
    const x1 = Math.ceil(((column + 1) * width) / wide);
    const y0 = Math.ceil((row * height) / high);
    const y1 = Math.ceil(((row + 1) * height) / high);
    const grow = (from: number, to: number): [number, number] => (to - from >= 3 ? [from, to - from] : [from - 1, 3]);
    const [x, w] = grow(x0, x1);
    const [y, hh] = grow(y0, y1);
    bad.push([x, y, w, hh, colour(kind)]);
  }
  context.fillStyle = "#000";
  if (bad.length <= 50000) for (const [x, y, w, hh] of bad) context.fillRect(x - 1, y - 1, w + 2, hh + 2);
  for (const [x, y, w, hh, fill] of bad) {
    context.fillStyle = fill;
    context.fillRect(x, y, w, hh);
  }
}

/** Bytes that a picture may take without a question. What cannot be sampled, as what is compressed as one stream, takes all. */
const MOST_UNASKED = 256 << 20;
/** Who wants nothing to move sees pictures when they are finished. */
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

/** Pictures that were finished lately. */
const kept = new Map<string, Picture>();

/** Asks for a picture; `seen` gets it as it sharpens, at most every 100 ms. */
export async function fetchPicture(question: string, seen: (picture: Picture) => void, signal: AbortSignal, most = MOST_UNASKED): Promise<Picture | null> {
  const known = kept.get(question);
  if (known) {
    seen(known);
    return known;
  }
  let last = 0;
  const found = await work(
    question,
    (buffer) => new Picture(buffer),
    (picture) => {
      const now = performance.now();
      if (!picture.finished && (now - last < 100 || STILL.matches)) return;
      last = now;
      seen(picture);
    },
    signal,
    most,
  );
  if (found) {
    kept.set(question, found);
    if (kept.size > 32) kept.delete(kept.keys().next().value!);
  }
  return found;
}
