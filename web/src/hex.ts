// Stored bytes, with a grid of the elements.

import { askBytes } from "./ask.js";
import { fill, h, select } from "./dom.js";
import { grouped, size } from "./format.js";
import { List, ROW } from "./list.js";
import type { Tensor } from "./pane.js";
import type { Archive } from "./table.js";

const LINE = 16;
const BLOCK = 4096;

/** Lines of bytes: `question` with `&from=…&n=…` gives them, `begin` is the place of the first in its file. */
export function hexList(question: string, len: number, begin: number, width: number): HTMLElement {
  const blocks = new Map<number, Uint8Array | string>();
  const list = new List("grid", "bytes", (n, row) => {
    row.setAttribute("role", "row");
    const from = n * LINE;
    const block = Math.floor(from / BLOCK);
    let found = blocks.get(block);
    if (found === undefined) {
      blocks.set(block, (found = "…"));
      void askBytes(`${question}&from=${block * BLOCK}&n=${BLOCK}`).then((bytes) => {
        blocks.set(block, new Uint8Array(bytes));
        list.refresh();
      }, (error: Error) => {
        blocks.set(block, error.message);
        list.refresh();
      });
    }
    const at = h("span", { class: "at num", role: "rowheader" }, grouped(begin + from));
    if (typeof found === "string") return fill(row, at, h("span", { class: "dim" }, found));
    const line = found.subarray(from - block * BLOCK, from - block * BLOCK + LINE);
    const bytes: HTMLElement[] = [];
    let text = "";
    line.forEach((byte, x) => {
      const isBorder = width > 0 && (from + x) % width === 0;
      bytes.push(h("span", { class: `byte${isBorder ? " first" : ""}${byte === 0 ? " zero" : ""}`, role: "gridcell" }, byte.toString(16).padStart(2, "0")));
      text += byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·";
    });
    fill(row, at, ...bytes, h("span", { class: "text dim" }, text));
  });
  list.element.classList.add("hex");
  const lines = Math.ceil(len / LINE);
  list.set(lines);
  // Few lines need no frame for many.
  if (lines < 30) list.element.style.height = `${lines * ROW + 4}px`;
  return list.element;
}

export function hex(archive: Archive, tensor: Tensor): HTMLElement {
  let part = 0;
  const place = h("div");
  const drawIt = () => {
    const found = tensor.parts[part];
    if (!found) return fill(place, h("p", { class: "dim" }, "nothing is stored for this tensor"));
    const isRaw = found.encoding === "raw";
    const bits = tensor.numbers && found.role === "values" && tensor.numbers.dtype === tensor.dtype ? tensor.numbers.bits * tensor.numbers.lanes : 0;
    const width = isRaw && bits >= 8 ? bits / 8 : 0;
    fill(place, h("p", { class: "dim" }, `${found.role} · ${found.dtype} · ${found.encoding} · ${found.endian}-endian · ${size(found.bytes)}${width > 1 ? ` · a line before each element of ${width} bytes` : ""}`),
      hexList(`stored?a=${archive.a}&t=${tensor.t}&part=${part}`, found.bytes, found.from ?? 0, width > 1 ? width : 0));
  };
  drawIt();
  const choice = tensor.parts.length > 1 ? select("part", tensor.parts.map((found, n): [string, string] => [String(n), found.role]), "0", (value) => {
    part = Number(value);
    drawIt();
  }) : null;
  return h("div", { class: "hexes" }, choice, place);
}
