// What a file says about itself. Texts are shown, never interpreted.

import { ask } from "./ask.js";
import { button, copy, fill, h, note } from "./dom.js";
import { grouped, shown, size } from "./format.js";
import type { Archive } from "./table.js";
import { empty } from "./tensors.js";

interface Entry {
  key: string;
  type: string;
  of?: string;
  count?: number;
  fact: boolean;
  cut: boolean;
  value: unknown;
}

const PAGE = 100;
/** Keys that are shown at once, and those that are asked for at all. */
const ROWS = 1000;
const MOST = 100000;
const TOKENS = "tokenizer.ggml.tokens";
const TOKEN_KINDS = ["", "normal", "unknown", "control", "user", "unused", "byte"];

export function metadata(archive: Archive, signal: AbortSignal): HTMLElement {
  const page = h("div", { class: "page metadata" });
  const table = h("tbody");
  const detail = h("section", { class: "detail" });
  const status = h("p", { class: "dim" });
  const find = h("input", { type: "search", class: "filter", placeholder: "filter keys and values", "aria-label": "filter metadata" });
  let entries: Entry[] = [];
  let count = 0;
  const drawIt = () => {
    const words = find.value.toLowerCase();
    const seen = entries.filter((entry) => !words || entry.key.toLowerCase().includes(words) || JSON.stringify(entry.value).toLowerCase().includes(words));
    status.textContent = `${grouped(seen.length)} of ${grouped(entries.length)} keys${count > entries.length ? `; the file has ${grouped(count)}, of which the first are listed` : ""}`;
    fill(table);
    const more = (from: number) => {
      table.append(...seen.slice(from, from + ROWS).map((entry) => row(archive, entry, detail)));
      const left = seen.length - from - ROWS;
      if (left <= 0) return;
      const next = h("tr", null, h("td", { colSpan: 4 }, button(`show ${grouped(Math.min(ROWS, left))} more of ${grouped(left)}`, () => {
        next.remove();
        more(from + ROWS);
      })));
      table.append(next);
    };
    more(0);
  };
  find.addEventListener("input", drawIt);
  find.addEventListener("keydown", (event) => event.stopPropagation());
  const load = async () => {
    for (let from = 0; ; from += 1000) {
      const found = await ask<{ count: number; entries: Entry[] }>(`meta?a=${archive.a}&from=${from}&n=1000`);
      entries = entries.concat(found.entries);
      count = found.count;
      if (entries.length >= count || !found.entries.length || entries.length >= MOST || signal.aborted) break;
    }
    if (!entries.length) return fill(page, empty("This file says nothing about itself.", "Tensors and Bytes have what there is."));
    drawIt();
    if (entries.some((entry) => entry.key === TOKENS)) page.append(tokenizer(archive, entries));
  };
  page.append(h("div", { class: "tools" }, find, status), h("table", { class: "keys" }, h("thead", null, h("tr", null, h("th", null, "key"), h("th", null, "type"), h("th", null, "value"), h("th", null, ""))), table), detail);
  void load().catch((error: Error) => fill(page, empty("The metadata cannot be read.", error.message)));
  return page;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function row(archive: Archive, entry: Entry, detail: HTMLElement): HTMLElement {
  const type = entry.of ? `list of ${entry.of}` : entry.type;
  const isLong = entry.cut || (entry.of !== undefined && (entry.count ?? 0) > 64);
  const list = entry.value as { $array?: number } | null;
  const value = list && typeof list === "object" && "$array" in list ? `${grouped(entry.count ?? 0)} entries` : shown(text(entry.value), 300) + (entry.cut ? " …" : "");
  return h("tr", null, h("td", { class: "mono" }, shown(entry.key, 200)), h("td", { class: "dim" }, type + (entry.fact ? " · follows from the file" : "")),
    h("td", { class: "mono value" }, value, entry.cut && entry.count ? h("span", { class: "dim" }, ` ${size(entry.count)}`) : null),
    h("td", null, isLong ? button("show", () => void open(archive, entry, detail), { "aria-label": `show ${entry.key}` }) : null, button("copy", () => void copyAll(archive, entry), { "aria-label": `copy ${entry.key}` })));
}

/** Copies a value as it is in the file, not as far as it is shown. */
async function copyAll(archive: Archive, entry: Entry): Promise<void> {
  const isLong = entry.cut || (typeof entry.value === "object" && entry.value !== null && "$array" in entry.value);
  if (!isLong) return copy(text(entry.value));
  const question = `meta?a=${archive.a}&key=${encodeURIComponent(entry.key)}`;
  try {
    if (!entry.of) {
      let whole = "";
      // A text comes in parts, which are counted in letters.
      for (let from = 0; ; ) {
        const found = await ask<{ text?: string; items?: unknown[] }>(`${question}&from=${from}`);
        if (found.text === undefined) return copy(text(found.items?.[0] ?? entry.value));
        const letters = [...found.text].length;
        whole += found.text;
        from += letters;
        if (letters === 0 || new Blob([whole]).size >= (entry.count ?? 0)) return copy(whole);
      }
    }
    const items: unknown[] = [];
    for (;;) {
      const found = await ask<{ count: number; items: unknown[] }>(`${question}&from=${items.length}&n=1000`);
      items.push(...found.items);
      if (items.length >= found.count || !found.items.length) break;
    }
    return copy(JSON.stringify(items));
  } catch (error) {
    note((error as Error).message);
  }
}

async function open(archive: Archive, entry: Entry, detail: HTMLElement, from = 0): Promise<void> {
  const key = encodeURIComponent(entry.key);
  const found = await ask<{ count: number; text?: string; items?: unknown[] }>(`meta?a=${archive.a}&key=${key}&from=${from}${entry.of ? `&n=${PAGE}` : ""}`);
  const head = h("h2", null, shown(entry.key, 200), " ", button("close", () => fill(detail)));
  if (found.text !== undefined) {
    fill(detail, head, button("copy", () => void copy(found.text!)), h("pre", { class: "long" }, found.text));
  } else {
    const items = found.items ?? [];
    const back = button("◂ before", () => void open(archive, entry, detail, Math.max(0, from - PAGE)), { disabled: from === 0 });
    const on = button("next ▸", () => void open(archive, entry, detail, from + PAGE), { disabled: from + PAGE >= found.count });
    fill(detail, head, h("p", null, back, on, h("span", { class: "dim" }, ` ${grouped(from)}–${grouped(Math.min(found.count, from + items.length))} of ${grouped(found.count)}`)),
      h("ol", { start: from, class: "items mono" }, ...items.map((item) => h("li", null, shown(text(item), 300)))));
  }
  detail.scrollIntoView({ block: "nearest" });
}

/** Tokens with their numbers, kinds and scores, to be looked up both ways. */
function tokenizer(archive: Archive, entries: Entry[]): HTMLElement {
  const has = (key: string) => entries.some((entry) => entry.key === key);
  const body = h("tbody");
  const told = h("p", { class: "dim" });
  const count = entries.find((entry) => entry.key === TOKENS)?.count ?? 0;
  let from = 0;
  const list = async (key: string, n: number, first: number) =>
    has(key) ? (await ask<{ items: unknown[] }>(`meta?a=${archive.a}&key=${encodeURIComponent(key)}&from=${first}&n=${n}`)).items : [];
  const put = (rows: [number, unknown, unknown, unknown][]) => fill(body, ...rows.map(([id, token, kind, score]) =>
    h("tr", null, h("td", { class: "num" }, String(id)), h("td", { class: "mono" }, shown(text(token), 120)), h("td", { class: "dim" }, TOKEN_KINDS[Number(kind)] ?? (kind === undefined ? "" : String(kind))), h("td", { class: "num" }, score === undefined ? "" : String(score)))));
  const load = async (first: number) => {
    from = Math.max(0, Math.min(Math.max(0, count - 1), first));
    const [tokens, kinds, scores] = await Promise.all([list(TOKENS, PAGE, from), list("tokenizer.ggml.token_type", PAGE, from), list("tokenizer.ggml.scores", PAGE, from)]);
    put(tokens.map((token, n) => [from + n, token, kinds[n], scores[n]]));
    told.textContent = `${grouped(from)}–${grouped(from + tokens.length)} of ${grouped(count)}`;
  };
  const find = h("input", { type: "search", class: "filter", placeholder: "a token, or #128 for a number", "aria-label": "look up tokens", onchange: () => void look() });
  find.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") void look();
  });
  const look = async () => {
    const wanted = find.value;
    if (!wanted) return load(0);
    if (/^#\d+$/.test(wanted)) return load(Number(wanted.slice(1)));
    const found = await ask<{ matches: { at: number; value: unknown }[]; more: boolean }>(`meta?a=${archive.a}&key=${TOKENS}&find=${encodeURIComponent(wanted)}&n=${PAGE}`);
    const rows = await Promise.all(found.matches.slice(0, 50).map(async ({ at, value }): Promise<[number, unknown, unknown, unknown]> => [at, value, (await list("tokenizer.ggml.token_type", 1, at))[0], (await list("tokenizer.ggml.scores", 1, at))[0]]));
    put(rows);
    told.textContent = `${rows.length}${found.more || found.matches.length > 50 ? " or more" : ""} tokens contain it`;
  };
  void load(0);
  return h("section", { class: "tokens" }, h("h2", null, "Tokenizer ", h("span", { class: "dim" }, `${grouped(count)} tokens`)),
    h("div", { class: "tools" }, find, button("◂ before", () => void load(from - PAGE)), button("next ▸", () => void load(from + PAGE)), told),
    h("table", { class: "keys" }, h("thead", null, h("tr", null, h("th", null, "id"), h("th", null, "token"), h("th", null, "kind"), h("th", null, "score"))), body));
}
