// Every file as rows of cells: what each byte belongs to, down to single bytes.

import { Refusal, ask } from "./ask.js";
import { type ByteMap, hatch, kindsAt } from "./bytemap.js";
import { KINDS } from "./colours.js";
import { button, canvas, css, fill, h, say } from "./dom.js";
import { grouped, middle, shown, size } from "./format.js";
import { hexList } from "./hex.js";
import { showTensor, state } from "./state.js";
import type { Archive } from "./table.js";

/** Sides of cells: larger ones for few bytes. */
const [SMALL, LARGE] = [8, 20];

/** Files that are shown, one strip each. */
const MOST_FILES = 64;

export function bytesScreen(archive: Archive, signal: AbortSignal): HTMLElement {
  const page = h("div", { class: "page bytes" });
  page.append(legend());
  const linked = /^(\d+):(\d+)-(\d+)$/.exec(state.link.slice);
  archive.summary.files.slice(0, MOST_FILES).forEach((file, n) => {
    const own = linked && Number(linked[1]) === n ? { from: Number(linked[2]), to: Number(linked[3]) } : null;
    page.append(fileMap(archive, n, shown(file.name ?? archive.summary.name), own, signal));
  });
  const left = archive.summary.files.length - MOST_FILES;
  if (left > 0) page.append(h("p", { class: "dim" }, `and ${grouped(left)} more files; \`tenfold view\` of one of them shows it`));
  if (!archive.summary.files.length) page.append(h("p", { class: "dim" }, "These tensors are in no file."));
  return page;
}

function legend(): HTMLElement {
  const names = ["header, index", "data (two shades by turns)", "padding", "unclaimed", "overlap", "behind the end"];
  return h("p", { class: "legend" }, ...names.map((name, kind) => {
    const [swatch, context] = canvas(18, 12, name);
    context.fillStyle = hatch(context, kind);
    context.fillRect(0, 0, swatch.width, swatch.height);
    return h("span", null, swatch, ` ${name}`);
  }));
}

function fileMap(archive: Archive, file: number, name: string, own: { from: number; to: number } | null, signal: AbortSignal): HTMLElement {
  const title = h("h2");
  const place = h("div", { class: "cells", tabIndex: 0 });
  const told = h("p", { class: "num" }, "\u00a0");
  const tools = h("div", { class: "tools" });
  const below = h("div");
  const section = h("section", null, title, tools, place, told, below);
  let map: ByteMap | null = null;
  let [from, to] = own ? [Math.max(0, own.from - 64), own.to + 64] : [0, Infinity];
  let at = 0;
  let columns = 1;
  let cell = SMALL;
  let rowCount = 24;
  const cellBytes = () => Math.max(1, (map!.to - map!.from) / (columns * rowCount));
  const load = () => {
    const wide = Math.max(280, section.clientWidth || 1200);
    rowCount = archive.summary.files.length > 1 ? 6 : 24;
    const bytes = Math.min(to, archive.summary.files[file].bytes) - from;
    cell = bytes <= Math.floor(wide / LARGE) * 8 ? LARGE : SMALL;
    columns = Math.floor(wide / cell);
    const range = Number.isFinite(to) ? `&from=${Math.floor(from)}&to=${Math.ceil(to)}` : "";
    void ask<ByteMap>(`extents?a=${archive.a}&file=${file}&cells=${columns * rowCount}${range}`).then((found) => {
      if (signal.aborted) return;
      map = found;
      [from, to] = [found.from, found.to];
      drawIt();
    }, (error: Error) => fill(place, h("p", null, "■ ", error.message, error instanceof Refusal && error.failure.rule ? ` [${error.failure.rule}]` : "")));
  };
  const drawIt = () => {
    if (!map) return;
    const span = map.to - map.from;
    const count = Math.min(columns * rowCount, Math.max(1, span));
    const used = Math.ceil(count / columns);
    const [element, context] = canvas(columns * cell, used * cell, `${name}: bytes ${map.from} to ${map.to}; ${map.kinds.map((kind, n) => `${kind} ${size(map!.totals[n])}`).join(", ")}`);
    const ratio = element.width / (columns * cell);
    context.scale(ratio, ratio);
    const kinds = kindsAt(map, count);
    const fills = KINDS.map((_, kind) => hatch(context, kind));
    for (let n = 0; n < count; n += 1) {
      context.fillStyle = fills[kinds[n]];
      context.fillRect((n % columns) * cell, Math.floor(n / columns) * cell, cell - 1, cell - 1);
    }
    const flags = archive.findings.filter((finding) => finding.range && (finding.source ?? 0) === file);
    for (const { range } of flags) {
      const n = Math.floor(((range![0] - map.from) / Math.max(1, span)) * count);
      if (n < 0 || n >= count) continue;
      context.fillStyle = css("text");
      const [x, y] = [(n % columns) * cell, Math.floor(n / columns) * cell];
      context.beginPath();
      context.moveTo(x + cell / 2, y);
      context.lineTo(x + cell, y + cell);
      context.lineTo(x, y + cell);
      context.closePath();
      context.fill();
      // It stands on any colour.
      context.strokeStyle = css("page");
      context.stroke();
    }
    const whereOf = (event: MouseEvent) => {
      const box = element.getBoundingClientRect();
      const n = Math.floor((event.clientY - box.top) / cell) * columns + Math.floor((event.clientX - box.left) / cell);
      return Math.max(0, Math.min(count - 1, n));
    };
    element.addEventListener("mousemove", (event) => tell(whereOf(event), count));
    element.addEventListener("click", (event) => {
      at = whereOf(event);
      zoom(0.125, map!.from + ((at + 0.5) * span) / count);
    });
    fill(place, element);
    fill(title, name, " ", h("span", { class: "dim" }, `bytes ${grouped(map.from)}–${grouped(map.to)} of ${grouped(map.len)} · ${cellBytes() <= 1 ? "a byte" : size(Math.round(cellBytes()))} a cell`));
    fill(tools, button("+", () => zoom(0.5), { "aria-label": "zoom in" }), button("−", () => zoom(2), { "aria-label": "zoom out" }), button("whole", () => {
      [from, to] = [0, Infinity];
      load();
    }), button("◂", () => pan(-0.5), { "aria-label": "towards the begin" }), button("▸", () => pan(0.5), { "aria-label": "towards the end" }),
    h("span", { class: "dim" }, map.kinds.map((kind, n) => (map!.totals[n] ? `${kind} ${size(map!.totals[n])}` : "")).filter(Boolean).join(" · ")));
    fill(below, extentTable(archive, map), span <= 65536 ? hexList(`stored?a=${archive.a}&file=${file}`, map.len, 0, 0) : null);
    const lines = below.querySelector(".hex");
    if (lines) lines.scrollTop = Math.floor(map.from / 16) * 20;
  };
  const tell = (n: number, count: number) => {
    if (!map) return;
    const byte = Math.floor(map.from + (n * (map.to - map.from)) / count);
    told.textContent = describe(archive, map, byte, n, count);
  };
  const zoom = (factor: number, around?: number) => {
    if (!map) return;
    const middleByte = around ?? (map.from + map.to) / 2;
    const half = Math.max(32, ((map.to - map.from) * factor) / 2);
    [from, to] = [Math.max(0, middleByte - half), Math.min(map.ends, middleByte + half)];
    load();
  };
  const pan = (part: number) => {
    if (!map) return;
    const span = map.to - map.from;
    const begin = Math.max(0, Math.min(map.ends - span, map.from + part * span));
    [from, to] = [begin, begin + span];
    load();
  };
  place.addEventListener("keydown", (event) => {
    if (!map) return;
    const moves: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    const count = Math.min(columns * rowCount, Math.max(1, map.to - map.from));
    if (event.key in moves) {
      at = Math.max(0, Math.min(count - 1, at + moves[event.key]));
      tell(at, count);
      say(told.textContent ?? "");
    } else if (event.key === "Enter") zoom(0.125, map.from + ((at + 0.5) * (map.to - map.from)) / count);
    else if (event.key === "Backspace") zoom(8);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  requestAnimationFrame(load);
  return section;
}

function describe(archive: Archive, map: ByteMap, byte: number, n: number, count: number): string {
  const found = map.extents.find(([from, to]) => byte >= from && byte < to);
  if (found) {
    const [from, to, kind, tensor, , label] = found;
    const what = tensor !== null ? `${shown(archive.names[tensor])} · ${archive.type(tensor)}` : label ?? map.kinds[kind];
    return `byte ${grouped(byte)} · ${map.kinds[kind]} · ${what} · ${grouped(from)}–${grouped(to)} (${size(to - from)})`;
  }
  const cell = map.cells ? Math.floor((n * map.cells.kind.length) / count) : -1;
  const tensor = map.cells?.tensor[cell] ?? -1;
  return `byte ${grouped(byte)} · ${map.kinds[map.cells?.kind[cell] ?? 5]}${tensor >= 0 ? ` · ${shown(archive.names[tensor])} and others` : ""}`;
}

/** What the cells are, in words. */
function extentTable(archive: Archive, map: ByteMap): HTMLElement {
  if (map.cells) return h("p", { class: "dim" }, "More extents than cells: zoom in to see each of them.");
  const list = map.extents.slice(0, 200).map(([from, to, kind, tensor, , label]) => h("tr", null, h("td", { class: "num" }, grouped(from)), h("td", { class: "num" }, size(to - from)), h("td", null, map.kinds[kind]),
    h("td", { class: "mono" }, tensor === null ? label ?? "" : h("a", { href: "#", onclick: (event: Event) => {
      event.preventDefault();
      showTensor(archive.a, archive.names[tensor]);
    } }, middle(archive.names[tensor], 80)))));
  const more = map.extents.length > 200 ? h("p", { class: "dim" }, `and ${map.extents.length - 200} more`) : null;
  return h("details", { class: "twin", open: true }, h("summary", null, `${map.extents.length} extents`), h("table", null, h("thead", null, h("tr", null, h("th", null, "from"), h("th", null, "size"), h("th", null, "kind"), h("th", null, "of"))), h("tbody", null, ...list)), more);
}
