// Rows that exist only while they are seen.

import { h } from "./dom.js";

export const ROW = 20;
/** Browsers end elements somewhere above this; longer lists scroll faster instead. */
const MOST = 16_000_000;

export class List {
  readonly element: HTMLElement;
  private readonly inside: HTMLElement;
  private readonly pool = new Map<number, HTMLElement>();
  private count = 0;
  private frame = 0;
  /** Rows of grids are counted by other words than items of trees and lists. */
  private readonly isGrid: boolean;

  constructor(
    role: string,
    label: string,
    private readonly render: (n: number, row: HTMLElement) => void,
    private readonly rowHeight = ROW,
  ) {
    this.isGrid = role === "grid";
    this.inside = h("div", { class: "inside", role: "presentation" });
    this.element = h("div", { class: "list", role, "aria-label": label, tabIndex: 0 }, this.inside);
    this.element.addEventListener("scroll", () => this.soon());
    new ResizeObserver(() => this.soon()).observe(this.element);
  }

  /** Shows another number of rows, from the first on unless it stays where it is. */
  set(count: number, stay = false): void {
    this.count = count;
    this.inside.style.height = `${Math.min(MOST, count * this.rowHeight)}px`;
    this.element.dataset["count"] = String(count);
    if (this.isGrid) this.element.setAttribute("aria-rowcount", String(count));
    if (!stay) this.element.scrollTop = 0;
    this.refresh();
  }

  /** Draws all rows again. */
  refresh(): void {
    this.inside.replaceChildren();
    this.pool.clear();
    this.draw();
  }

  show(n: number): void {
    const top = this.top(n);
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.rowHeight > scrollTop + clientHeight) this.element.scrollTop = top + this.rowHeight - clientHeight;
    this.draw();
  }

  private scale(): number {
    const whole = this.count * this.rowHeight;
    const seen = this.element.clientHeight;
    return whole <= MOST ? 1 : (whole - seen) / Math.max(1, MOST - seen);
  }

  private top(n: number): number {
    return (n * this.rowHeight) / this.scale();
  }

  private soon(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    const at = this.element.scrollTop;
    const from = Math.floor((at * this.scale()) / this.rowHeight);
    const seen = Math.ceil(this.element.clientHeight / this.rowHeight) + 2;
    const first = Math.max(0, from - 4);
    const last = Math.min(this.count, from + seen + 4);
    for (const [n, row] of this.pool) {
      if (n < first || n >= last) {
        row.remove();
        this.pool.delete(n);
      }
    }
    const isScaled = this.scale() !== 1;
    for (let n = first; n < last; n += 1) {
      let row = this.pool.get(n);
      if (!row) {
        row = h("div", { class: "row" });
        if (this.isGrid) row.setAttribute("aria-rowindex", String(n + 1));
        else {
          row.setAttribute("aria-posinset", String(n + 1));
          row.setAttribute("aria-setsize", String(this.count));
        }
        this.render(n, row);
        this.pool.set(n, row);
        this.inside.append(row);
      }
      const top = isScaled ? at + (n - from) * this.rowHeight - ((at * this.scale()) % this.rowHeight) : n * this.rowHeight;
      row.style.transform = `translateY(${top}px)`;
    }
  }
}
