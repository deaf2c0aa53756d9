// Which part of a tensor is shown: two dimensions, an index along the others, a rectangle.

import { go, state } from "./state.js";

export interface Rect {
  r0: number;
  r1: number;
  c0: number;
  c1: number;
}

export class Plane {
  rows: number;
  columns: number;
  at: number[];
  fold: number;
  rect: Rect;

  constructor(readonly shape: number[]) {
    const rank = shape.length;
    [this.rows, this.columns] = [rank - 2, rank - 1];
    const axes = state.link.axes.split(",").map(Number);
    if (rank >= 2 && axes.length === 2 && axes.every((axis) => Number.isInteger(axis) && axis >= 0 && axis < rank) && axes[0] !== axes[1]) {
      [this.rows, this.columns] = axes as [number, number];
    }
    const at = state.link.at ? state.link.at.split(",").map(Number) : [];
    this.at = shape.map((dim, axis) => Math.min(Math.max(0, Math.floor(at[axis] ?? 0) || 0), Math.max(0, dim - 1)));
    this.fold = rank === 1 ? Math.max(0, Math.min(shape[0], state.link.fold || foldOf(shape[0]))) : 0;
    this.rect = this.whole();
    this.fromSlice(state.link.slice);
  }

  get rowCount(): number {
    if (this.shape.includes(0)) return 0;
    if (this.fold) return Math.ceil(this.shape[0] / this.fold);
    return this.rows >= 0 ? this.shape[this.rows] : 1;
  }

  get columnCount(): number {
    if (this.shape.includes(0)) return 0;
    if (this.fold) return Math.min(this.fold, this.shape[0]);
    return this.columns >= 0 ? this.shape[this.columns] : 1;
  }

  whole(): Rect {
    return { r0: 0, r1: this.rowCount, c0: 0, c1: this.columnCount };
  }

  get isWhole(): boolean {
    const { r0, r1, c0, c1 } = this.rect;
    return r0 === 0 && c0 === 0 && r1 === this.rowCount && c1 === this.columnCount;
  }

  /** The other dimensions. */
  get others(): number[] {
    return this.fold ? [] : this.shape.map((_, axis) => axis).filter((axis) => axis !== this.rows && axis !== this.columns);
  }

  /** As NumPy writes it. */
  slice(rect: Rect = this.rect): string {
    if (this.fold) return this.isWhole ? "" : `${rect.r0 * this.fold}:${Math.min(this.shape[0], rect.r1 * this.fold)}`;
    if (this.shape.length < 2 && this.isWhole) return "";
    return this.shape
      .map((_, axis) => (axis === this.rows ? `${rect.r0}:${rect.r1}` : axis === this.columns ? `${rect.c0}:${rect.c1}` : String(this.at[axis])))
      .join(",");
  }

  private fromSlice(text: string): void {
    if (!text) return;
    if (this.fold) {
      const range = /^(\d+):(\d+)$/.exec(text.trim());
      if (!range) return;
      const [from, to] = [Math.floor(Number(range[1]) / this.fold), Math.min(this.rowCount, Math.ceil(Number(range[2]) / this.fold))];
      if (from < to) [this.rect.r0, this.rect.r1] = [from, to];
      return;
    }
    const parts = text.split(",");
    parts.forEach((part, axis) => {
      const range = /^(\d*):(\d*)$/.exec(part.trim());
      if (!range) {
        const index = Number(part);
        if (axis < this.shape.length && Number.isInteger(index) && index >= 0 && index < this.shape[axis]) this.at[axis] = index;
        return;
      }
      const from = Number(range[1] || 0);
      const most = axis === this.rows ? this.rowCount : this.columnCount;
      const to = Math.min(most, range[2] ? Number(range[2]) : most);
      if (!(from < to)) return;
      if (axis === this.rows) [this.rect.r0, this.rect.r1] = [from, to];
      if (axis === this.columns) [this.rect.c0, this.rect.c1] = [from, to];
    });
  }

  /** Shows another rectangle, inside of what there is. */
  show(r0: number, r1: number, c0: number, c1: number): void {
    const side = (from: number, to: number, most: number): [number, number] => {
      const len = Math.max(1, Math.min(most, Math.round(to - from)));
      const begin = Math.max(0, Math.min(most - len, Math.round(from)));
      return [begin, begin + len];
    };
    [this.rect.r0, this.rect.r1] = side(r0, r1, this.rowCount);
    [this.rect.c0, this.rect.c1] = side(c0, c1, this.columnCount);
    this.remember();
  }

  zoom(factor: number, row?: number, column?: number): void {
    const { r0, r1, c0, c1 } = this.rect;
    const [y, x] = [row ?? (r0 + r1) / 2, column ?? (c0 + c1) / 2];
    this.show(y - (y - r0) * factor, y + (r1 - y) * factor, x - (x - c0) * factor, x + (c1 - x) * factor);
  }

  pan(rows: number, columns: number): void {
    const { r0, r1, c0, c1 } = this.rect;
    const [dr, dc] = [Math.round(rows * (r1 - r0)), Math.round(columns * (c1 - c0))];
    this.show(r0 + dr, r1 + dr, c0 + dc, c1 + dc);
  }

  swap(): void {
    if (this.fold || this.shape.length < 2) return;
    [this.rows, this.columns] = [this.columns, this.rows];
    this.rect = this.whole();
    this.remember();
  }

  axis(which: "rows" | "columns", axis: number): void {
    if (which === "rows" ? axis === this.columns : axis === this.rows) [this.rows, this.columns] = [this.columns, this.rows];
    else this[which] = axis;
    this.rect = this.whole();
    this.remember();
  }

  remember(): void {
    const isUsual = this.rows === this.shape.length - 2 && this.columns === this.shape.length - 1;
    go({
      slice: this.isWhole ? "" : this.slice(),
      axes: isUsual || this.shape.length < 2 ? "" : `${this.rows},${this.columns}`,
      fold: this.fold && this.fold !== foldOf(this.shape[0]) ? this.fold : 0,
      at: this.others.some((axis) => this.at[axis]) ? this.at.join(",") : "",
    }, true);
  }

  question(a: number, t: number, high: number, wide: number, all: boolean, component: string): string {
    const { r0, r1, c0, c1 } = this.rect;
    let text = `tile?a=${a}&t=${t}&r0=${r0}&r1=${r1}&c0=${c0}&c1=${c1}&h=${high}&w=${wide}`;
    if (this.fold) text += `&fold=${this.fold}`;
    else if (this.shape.length >= 2) text += `&axes=${this.rows},${this.columns}&at=${this.at.join(",")}`;
    if (all) text += "&all=1";
    if (component) text += `&component=${component}`;
    return text;
  }
}

/** Lines of a vector: about a square, of a power of two where it is long. */
function foldOf(len: number): number {
  if (len <= 64) return 0;
  return Math.min(1024, 2 ** Math.ceil(Math.log2(Math.sqrt(len)) + 1));
}
