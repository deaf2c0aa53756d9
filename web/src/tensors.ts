// All tensors on the left, one of them on the right.

import { button, fill, h, note, say, marked } from "./dom.js";
import { filter } from "./filter.js";
import { grouped, middle, plural, shown, size } from "./format.js";
import { List, ROW } from "./list.js";
import { WHOLE, go, state } from "./state.js";
import type { Archive } from "./table.js";
import { type Node, type Row, compare, rows, tree } from "./tree.js";
import { tensorPane } from "./pane.js";

type Sort = "place" | "name" | "size" | "elements" | "dtype";
const SORTS: [Sort, string][] = [["place", "place in file"], ["name", "name"], ["size", "size"], ["elements", "elements"], ["dtype", "dtype"]];

interface Memory {
  open: Set<string>;
  flat: boolean;
  sort: Sort;
  /** Everything, as a tree and in each order that was asked for: what is typed chooses among it. */
  root: Node;
  orders: Map<Sort, Uint32Array>;
}

const memories = new WeakMap<Archive, Memory>();

export interface TensorsScreen {
  element: HTMLElement;
  keys: (key: string, event: KeyboardEvent) => boolean;
}

/** All tensors in an order. */
function inOrder(archive: Archive, memory: Memory): Uint32Array {
  const known = memory.orders.get(memory.sort);
  if (known) return known;
  const by: Record<Sort, (a: number, b: number) => number> = {
    place: (a, b) => archive.source[a] - archive.source[b] || archive.offset[a] - archive.offset[b] || a - b,
    name: (a, b) => compare(archive.names[a], archive.names[b]),
    size: (a, b) => archive.stored[b] - archive.stored[a],
    elements: (a, b) => archive.elements[b] - archive.elements[a],
    dtype: (a, b) => archive.dtype[a] - archive.dtype[b] || a - b,
  };
  const order = Uint32Array.from({ length: archive.count }, (_, t) => t).sort(by[memory.sort]);
  memory.orders.set(memory.sort, order);
  return order;
}

export function tensors(archive: Archive, signal: AbortSignal): TensorsScreen {
  let memory = memories.get(archive);
  if (!memory) {
    const root = tree(archive, Array(archive.count).keys());
    // A small file is open from the start.
    const open = new Set<string>();
    if (archive.count <= 60) for (const row of rows(root, { has: () => true } as unknown as Set<string>)) open.add(row.node.path);
    else for (const row of rows(root, new Set())) if (row.node.count < 400) open.add(row.node.path);
    memory = { open, flat: false, sort: "place", root, orders: new Map() };
    memories.set(archive, memory);
  }
  const kept = memory;
  const right = h("main", { class: "pane", id: "pane" });
  const status = h("div", { class: "dim status", role: "status" });
  const find = h("input", { type: "search", class: "filter", value: state.link.filter, placeholder: "/ filter:  mlp & size>1MiB & dtype:bf16", "aria-label": "filter tensors", spellcheck: false });
  let seen: Row[] = [];
  let order: ArrayLike<number> = [];
  /** The tree of what the filter keeps, and the text of the filter. */
  let root = kept.root;
  let filtered = "";
  let chosen = -1;
  let pane: ReturnType<typeof tensorPane> | null = null;

  const count = () => (kept.flat ? order.length : seen.length);
  const tensorAt = (n: number) => (kept.flat ? order[n] : seen[n]?.node.children ? -1 : seen[n]?.node.tensor ?? -1);

  const list = new List("tree", "tensors", (n, row) => {
    row.setAttribute("role", "treeitem");
    row.id = `row${n}`;
    row.classList.toggle("chosen", n === chosen);
    row.setAttribute("aria-selected", String(n === chosen));
    if (kept.flat) {
      const t = order[n];
      put(row, 0, "", archive.names[t], archive.type(t), archive.stored[t], archive.isDefect(t));
      row.addEventListener("click", () => choose(n, true));
      return;
    }
    const { node, depth } = seen[n];
    const isOpen = kept.open.has(node.path);
    const type = node.dtype >= 0 ? archive.dtypes[node.dtype] : node.children ? String(node.count) : "";
    row.setAttribute("aria-level", String(depth + 1));
    if (node.children) row.setAttribute("aria-expanded", String(isOpen));
    const label = node.label + (node.like ? `.*  ×${node.like}` : "");
    put(row, depth, node.children ? (isOpen ? "▾" : "▸") : "", label || "(no name)", type, node.stored, node.tensor >= 0 && archive.isDefect(node.tensor));
    row.addEventListener("click", () => {
      choose(n, true);
      if (node.children) toggle(n);
    });
  });
  const put = (row: HTMLElement, depth: number, mark: string, name: string, type: string, stored: number, isDefect: boolean) => {
    const label = h("span", { class: "name mono", title: shown(name) }, h("span", { class: "mark" }, mark), isDefect ? "■ " : "", middle(name, 64));
    label.style.paddingLeft = `${depth * 14}px`;
    fill(row, label, h("span", { class: "mono dim" }, type), h("span", { class: "num", title: `${stored} bytes` }, size(stored)));
  };

  const build = (stay = false) => {
    const test = filter(archive, find.value);
    if (typeof test === "string") {
      status.textContent = test;
      find.setAttribute("aria-invalid", "true");
      return;
    }
    find.removeAttribute("aria-invalid");
    const text = find.value.trim();
    let found = archive.count;
    if (kept.flat) {
      const all = inOrder(archive, kept);
      order = text ? all.filter(test) : all;
      found = order.length;
    } else {
      if (text !== filtered) {
        const keep: number[] = [];
        for (let t = 0; text && t < archive.count; t += 1) if (test(t)) keep.push(t);
        root = text ? tree(archive, keep) : kept.root;
        filtered = text;
      }
      found = root.count;
      seen = rows(root, text && root.count <= 2000 ? ({ has: () => true } as unknown as Set<string>) : kept.open);
    }
    const isAll = found === archive.count;
    status.textContent = isAll ? plural(archive.count, "tensor") : `${grouped(found)} of ${plural(archive.count, "tensor")}`;
    chosen = -1;
    const wanted = state.link.t ? archive.place(state.link.t) : undefined;
    for (let n = 0; n < count() && wanted !== undefined; n += 1) {
      if (tensorAt(n) === wanted) {
        chosen = n;
        break;
      }
    }
    list.set(count(), stay);
    if (chosen >= 0 && !stay) list.show(chosen);
    active();
  };
  const active = () => {
    if (chosen >= 0) list.element.setAttribute("aria-activedescendant", `row${chosen}`);
    else list.element.removeAttribute("aria-activedescendant");
  };
  const toggle = (n: number) => {
    const { node } = seen[n];
    if (kept.open.has(node.path)) kept.open.delete(node.path);
    else kept.open.add(node.path);
    build(true);
    chosen = Math.min(n, count() - 1);
    list.refresh();
    active();
  };
  const choose = (n: number, opens: boolean) => {
    if (n < 0 || n >= count()) return;
    chosen = n;
    list.show(n);
    list.refresh();
    active();
    const t = tensorAt(n);
    if (t >= 0 && opens) open(t);
    else say(kept.flat ? archive.names[order[n]] : `${shown(seen[n].node.path)}, ${plural(seen[n].node.count, "tensor")}`);
  };
  const open = (t: number) => {
    if (state.link.t !== archive.names[t]) {
      go({ t: archive.names[t], ...WHOLE }, true);
    }
    pane?.stop();
    if (signal.aborted) return;
    pane = tensorPane(archive, t);
    fill(right, pane.element);
  };

  const sortChoice = h("select", { "aria-label": "sort by", title: "s", onchange: () => {
    kept.sort = sortChoice.value as Sort;
    kept.flat = true;
    flat.textContent = "tree";
    build();
  } }, ...SORTS.map(([value, label]) => h("option", { value, selected: value === kept.sort }, label)));
  const flat = button(kept.flat ? "tree" : "flat", () => {
    kept.flat = !kept.flat;
    flat.textContent = kept.flat ? "tree" : "flat";
    build();
  }, { title: "t" });
  let typed = 0;
  /** How long it took the last time: where that is felt, it waits for the end of a word. */
  let took = 0;
  find.addEventListener("input", () => {
    clearTimeout(typed);
    typed = window.setTimeout(() => {
      go({ filter: find.value }, true);
      const from = performance.now();
      build();
      took = performance.now() - from;
    }, took > 30 ? 80 : 0);
  });
  find.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      list.element.focus();
      let n = 0;
      while (n < count() && tensorAt(n) < 0) n += 1;
      choose(n < count() ? n : 0, event.key === "Enter");
      event.preventDefault();
    }
    if (event.key === "Escape") {
      find.value = "";
      go({ filter: "" }, true);
      build();
      list.element.focus();
    }
    event.stopPropagation();
  });
  list.element.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(list.element.clientHeight / ROW) - 1);
    const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves) choose(Math.max(0, Math.min(count() - 1, chosen + moves[event.key])), true);
    else if (event.key === "ArrowRight" && !kept.flat && seen[chosen]?.node.children) {
      if (kept.open.has(seen[chosen].node.path)) choose(chosen + 1, true);
      else toggle(chosen);
    } else if (event.key === "ArrowLeft" && !kept.flat && chosen >= 0) {
      if (seen[chosen].node.children && kept.open.has(seen[chosen].node.path)) toggle(chosen);
      else {
        let n = chosen;
        while (n > 0 && seen[n].depth >= seen[chosen].depth) n -= 1;
        choose(n, false);
      }
    } else if (event.key === "Enter" && chosen >= 0) {
      if (!kept.flat && seen[chosen].node.children) toggle(chosen);
      else {
        choose(chosen, true);
        right.querySelector<HTMLElement>("[tabindex]")?.focus();
      }
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  const left = h("aside", { class: "left" }, find,
    h("div", { class: "columns dim" }, h("span", null, "name"), h("span", null, "dtype"), h("span", null, "size")),
    list.element, status,
    h("div", { class: "tools" }, flat, h("label", { class: "dim" }, "sort ", sortChoice)));
  const element = h("div", { class: "tensors" }, left, right);
  signal.addEventListener("abort", () => {
    clearTimeout(typed);
    pane?.stop();
  }, { once: true });

  const begin = () => {
    build();
    const wanted = state.link.t ? archive.place(state.link.t) : undefined;
    if (wanted !== undefined) open(wanted);
    else if (state.link.t) fill(right, empty(`There is no tensor “${shown(state.link.t)}” in this file.`, "The list on the left has those that there are."));
    else if (!archive.count) fill(right, empty("This file holds no tensors.", archive.summary.metadata ? "Metadata has what it says about itself." : "It is empty, and that is all."));
    else fill(right, empty("Choose a tensor on the left.", "↑ ↓ move, → opens a group, / filters, ? lists all keys."));
    if (chosen < 0 && wanted !== undefined && !kept.flat) reveal(wanted);
  };
  /** Opens the groups on the way to a tensor. */
  const reveal = (t: number) => {
    const name = archive.names[t];
    for (let at = 0; at < name.length; at += 1) if (/[./]/.test(name[at])) kept.open.add(name.slice(0, at));
    build();
  };
  begin();

  return {
    element,
    keys: (key, event) => {
      if (key === "/") {
        find.focus();
        find.select();
      } else if (key === "t") flat.click();
      else if (key === "s") {
        const next = SORTS[(SORTS.findIndex(([value]) => value === kept.sort) + 1) % SORTS.length];
        sortChoice.value = next[0];
        sortChoice.dispatchEvent(new Event("change"));
        note(`sorted by ${next[1]}`);
      } else return pane?.keys(key, event) ?? false;
      return true;
    },
  };
}

export function empty(title: string, text: string): HTMLElement {
  return h("div", { class: "empty" }, h("p", { class: "title" }, title), h("p", { class: "dim" }, ...marked(text)));
}
