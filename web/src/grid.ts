// Values in a grid: exact digits, read as they are seen.

import { ask } from "./ask.js";
import { fill, h } from "./dom.js";
import { List, ROW } from "./list.js";
import type { Plane } from "./plane.js";
import type { Archive } from "./table.js";

interface Values {
  dtype: string;
  shape: number[];
  texts: string[];
  kinds: string;
}

const KIND: Record<string, string> = { n: "bad", "+": "bad", "-": "bad", "0": "zero", s: "small" };
/** Rows that are asked for together, and numbers, at most. */
const ROWS = 64;
const MOST = 10000;

/** Pixels that a number of a type takes, usually. */
function digits(dtype: string): number {
  if (/^(c64|c32)/.test(dtype)) return 210;
  if (/^(f64|f128|c128|i64|u64)/.test(dtype)) return 176;
  if (/^(f32|bf16)/.test(dtype)) return 116;
  return /^(bool|[iu][1-8]$|f[48])/.test(dtype) ? 58 : 84;
}

export function grid(archive: Archive, t: number, plane: Plane, dtype: string, wide: number, signal: AbortSignal): HTMLElement {
  const { r0, r1, c0, c1 } = plane.rect;
  const columns = Math.min(c1 - c0, Math.max(1, Math.floor((wide - 92) / digits(dtype))));
  let left = c0;
  // Of a folded vector whole lines come, of one with very long lines the columns that are seen.
  const isCut = plane.fold * 2 > MOST;
  const lines = isCut ? 1 : plane.fold ? Math.min(ROWS, Math.floor(MOST / plane.fold)) : Math.max(1, Math.min(ROWS, Math.floor(MOST / columns)));
  const blocks = new Map<string, Values | "asked" | string>();
  const want = (block: number) => {
    const key = `${left}:${block}`;
    const known = blocks.get(key);
    if (known) return known;
    blocks.set(key, "asked");
    const from = r0 + block * lines;
    const to = Math.min(r1, from + lines);
    const right = Math.min(c1, left + columns);
    const [begin, end] = isCut ? [from * plane.fold + left, from * plane.fold + Math.min(c1, left + columns)] : [from * plane.fold, to * plane.fold];
    const question = plane.fold
      ? `${begin}:${Math.min(plane.shape[0], end)}`
      : plane.slice({ r0: from, r1: to, c0: left, c1: right });
    void ask<Values>(`values?a=${archive.a}&t=${t}&slice=${encodeURIComponent(question)}`).then((found) => {
      blocks.set(key, found);
      if (!signal.aborted) list.refresh();
    }, (error: Error) => {
      blocks.set(key, error.message);
      if (!signal.aborted) list.refresh();
    });
    return "asked";
  };
  const list = new List("grid", "values", (n, row) => {
    row.setAttribute("role", "row");
    const block = Math.floor(n / lines);
    const found = want(block);
    const head = h("span", { class: "at num", role: "rowheader" }, plane.fold ? String((r0 + n) * plane.fold) : String(r0 + n));
    if (typeof found === "string") return fill(row, head, h("span", { class: "dim" }, found === "asked" ? "…" : found));
    const wide = plane.fold || Math.min(columns, c1 - left);
    const shownCells: HTMLElement[] = [];
    const inBlock = n - block * lines;
    const high = Math.min(lines, r1 - r0 - block * lines);
    for (let x = 0; x < Math.min(columns, c1 - left); x += 1) {
      // What was swapped comes column by column; of a folded vector come whole lines.
      const at = isCut ? x : plane.fold ? inBlock * wide + left + x : plane.rows > plane.columns ? x * high + inBlock : inBlock * wide + x;
      if (at >= found.texts.length) break;
      shownCells.push(h("span", { class: `value num ${KIND[found.kinds[at]] ?? ""}`, role: "gridcell", title: found.texts[at] }, found.texts[at]));
    }
    fill(row, head, ...shownCells);
  }, ROW);
  list.element.classList.add("grid");
  list.set(r1 - r0);
  const heads = h("div", { class: "row heads", role: "row" });
  const drawHeads = () => {
    const names: HTMLElement[] = [];
    for (let x = 0; x < Math.min(columns, c1 - left); x += 1) names.push(h("span", { class: "value num dim", role: "columnheader" }, String(left + x)));
    fill(heads, h("span", { class: "at" }), ...names);
  };
  drawHeads();
  const slider = h("input", { type: "range", min: c0, max: Math.max(c0, c1 - columns), value: String(c0), "aria-label": "first column", oninput: () => {
    left = Number(slider.value);
    drawHeads();
    list.refresh();
  } });
  const tools = c1 - c0 > columns ? h("label", { class: "tools dim" }, "columns ", slider) : null;
  return h("div", { class: "values" }, tools, heads, list.element, h("p", { class: "dim" }, "Each number has as many digits as tell it from every other of its type."));
}
