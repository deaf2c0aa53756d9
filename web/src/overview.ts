// What is this, and is it sound? In one look.

import { SHADE, category, on } from "./colours.js";
import { canvas, css, h, say } from "./dom.js";
import { big, ending, grouped, middle, plural, shown, size } from "./format.js";
import { drawStrip, type ByteMap } from "./bytemap.js";
import { ask } from "./ask.js";
import { go, showTensor } from "./state.js";
import type { Archive, Finding } from "./table.js";
import { type Node, children, compare as natural, tree } from "./tree.js";
import { type Area, areas } from "./treemap.js";

const SIGNS = { error: "■", warning: "▲", note: "●" } as const;

/** Findings that Overview shows. */
const MOST_FINDINGS = 8;

export function overview(archive: Archive, signal: AbortSignal): HTMLElement {
  const page = h("div", { class: "page overview" });
  page.append(figures(archive));
  const root = tree(archive, Array(archive.count).keys());
  page.append(h("div", { class: "split" }, whereBytes(archive, root, signal), side(archive)));
  const found = [...archive.findings, ...oddNumbers(archive)];
  page.append(strips(archive), findings(archive, found.slice(0, MOST_FINDINGS)));
  if (found.length > MOST_FINDINGS) page.append(h("p", { class: "dim" }, h("a", { href: "#tab=checks", onclick: (event: Event) => {
    event.preventDefault();
    go({ tab: "checks" });
  } }, `and ${plural(found.length - MOST_FINDINGS, "more finding")}, on Checks`)));
  return page;
}

/** What a look at the numbers found, in the form of findings. */
function oddNumbers(archive: Archive): Finding[] {
  const found: Finding[] = [];
  for (const figures of archive.stats?.values() ?? []) {
    const infinities = figures.positive_infinities + figures.negative_infinities;
    if (figures.error || !(figures.nan || infinities)) continue;
    const message = [figures.nan ? plural(figures.nan, "NaN", "NaN") : "", infinities ? plural(infinities, "infinity", "infinities") : ""].filter(Boolean).join(", ");
    found.push({ severity: "warning", rule: figures.nan ? "numbers.nan" : "numbers.infinite", tensor: figures.name, file: "", range: null, message, t: archive.place(figures.name) ?? null, source: null });
  }
  return found;
}

function figures(archive: Archive): HTMLElement {
  const { summary } = archive;
  const layers = layerNames(archive).size;
  const warnings = summary.warnings + oddNumbers(archive).length;
  const isSound = summary.errors + warnings === 0;
  const checks = summary.errors
    ? plural(summary.errors, "error")
    : warnings
      ? plural(warnings, "warning")
      : "no findings";
  const figure = (name: string, value: string, more: string, kind = "", title = "") =>
    h("div", { class: `figure ${kind}`, title }, h("div", { class: "what" }, name), h("div", { class: "value" }, value), h("div", { class: "more" }, more));
  return h("section", { class: "figures", "aria-label": "figures" },
    figure("tensors", grouped(summary.tensors), layers > 1 ? `${layers} layers` : plural(summary.files.length, "file")),
    figure("parameters", big(summary.elements), `exact ${grouped(summary.elements)}`),
    figure("stored", size(summary.stored), summary.dense === summary.stored ? `file ${size(summary.bytes)}` : `dense ${size(summary.dense)}`, "", `${summary.stored} bytes`),
    figure("dtypes", String(summary.types.length), summary.types.map((type) => type.name).join(" ")),
    figure("checks", checks, summary.checksums ? plural(summary.checksums, "checksum") : "no checksums in this file", isSound ? "" : summary.errors ? "bad" : "warn"),
  );
}

/** The tensors of each layer: of the same number behind the same name, so that an encoder is no decoder. */
function layerNames(archive: Archive): Map<string, number[]> {
  const layers = new Map<string, number[]>();
  for (let t = 0; t < archive.count; t += 1) {
    const layer = /^.*?(?:^|[./])\d+(?=[./])/.exec(archive.names[t])?.[0];
    if (layer === undefined) continue;
    const known = layers.get(layer);
    if (known) known.push(t);
    else layers.set(layer, [t]);
  }
  return layers;
}

function whereBytes(archive: Archive, root: Node, signal: AbortSignal): HTMLElement {
  const path = h("span", { class: "dim" });
  const rows = h("tbody");
  const twin = h("details", { class: "twin" }, h("summary", null, "as table"), h("table", null, h("thead", null, h("tr", null, ...["part", "stored", "tensors", "dtype"].map((head) => h("th", null, head)))), rows));
  const place = h("div", { class: "treemap", tabIndex: 0, role: "group", "aria-label": "where the bytes are" });
  const section = h("section", null,
    h("h2", null, "Where the bytes are ", h("span", { class: "dim" }, "area = stored bytes · colour = dtype · Enter goes in, Backspace out "), path), place, twin);
  const trail: Node[] = [root];
  let chosen = 0;
  let shownAreas: Area[] = [];
  const drawIt = () => {
    const node = trail[trail.length - 1];
    const wide = Math.max(280, place.clientWidth || 760);
    const high = 330;
    shownAreas = areas(node, wide, high);
    const top = shownAreas.filter((area) => area.depth === 0);
    chosen = Math.min(chosen, Math.max(0, top.length - 1));
    const [element, context] = canvas(wide, high, summaryOf(archive, node, top));
    const ratio = element.width / wide;
    context.scale(ratio, ratio);
    for (const area of shownAreas) {
      const inner = area.node.children && area.depth === 0 && shownAreas.some((other) => other.depth === 1 && other.x >= area.x && other.x < area.x + area.w && other.y >= area.y && other.y < area.y + area.h);
      context.fillStyle = category(area.node.dtype);
      context.fillRect(area.x, area.y, area.w, area.h);
      if (inner) {
        context.fillStyle = `rgba(0,0,0,${SHADE})`;
        context.fillRect(area.x, area.y, area.w, area.h);
      }
      context.strokeStyle = css("page");
      context.lineWidth = area.depth ? 0.75 : 1.5;
      context.strokeRect(area.x, area.y, area.w, area.h);
      label(context, archive, area, Boolean(inner));
    }
    const focus = top[chosen];
    if (focus && document.activeElement === place) {
      context.strokeStyle = css("text");
      context.lineWidth = 3;
      context.strokeRect(focus.x + 2, focus.y + 2, focus.w - 4, focus.h - 4);
    }
    element.addEventListener("click", (event) => {
      const hit = find(event);
      if (hit) open(hit.node);
    });
    element.addEventListener("mousemove", (event) => {
      const hit = find(event);
      element.title = hit ? describe(archive, hit.node) : "";
    });
    place.replaceChildren(element);
    rows.replaceChildren(...top.slice(0, 200).map((area) => h("tr", null, h("td", { class: "mono" }, shown(area.node.path || area.node.label, 120)), h("td", { class: "num" }, size(area.node.stored)), h("td", { class: "num" }, grouped(area.node.count)), h("td", { class: "mono" }, typeOf(archive, area.node)))));
    path.textContent = node.path ? `· ${shown(node.path)}` : "";
  };
  const find = (event: MouseEvent) => {
    const box = place.firstElementChild!.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const hits = shownAreas.filter((area) => x >= area.x && x < area.x + area.w && y >= area.y && y < area.y + area.h);
    return hits[hits.length - 1];
  };
  const open = (node: Node) => {
    if (children(node).length) {
      trail.push(node);
      chosen = 0;
      drawIt();
    } else if (node.tensor >= 0) showTensor(archive.a, archive.names[node.tensor]);
  };
  place.addEventListener("keydown", (event) => {
    const top = shownAreas.filter((area) => area.depth === 0);
    if (event.key === "Enter" && top[chosen]) open(top[chosen].node);
    else if (event.key === "Backspace" && trail.length > 1) {
      trail.pop();
      drawIt();
    } else if (event.key === "ArrowRight" || event.key === "ArrowDown") chosen = Math.min(top.length - 1, chosen + 1);
    else if (event.key === "ArrowLeft" || event.key === "ArrowUp") chosen = Math.max(0, chosen - 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
    drawIt();
    const now = shownAreas.filter((area) => area.depth === 0)[chosen];
    if (now) say(describe(archive, now.node));
  });
  place.addEventListener("focus", drawIt);
  place.addEventListener("blur", drawIt);
  let last = 0;
  const resized = new ResizeObserver(() => {
    if (place.clientWidth !== last) {
      last = place.clientWidth;
      drawIt();
    }
  });
  resized.observe(place);
  signal.addEventListener("abort", () => resized.disconnect(), { once: true });
  return section;
}

function label(context: CanvasRenderingContext2D, archive: Archive, area: Area, isTitle: boolean): void {
  if (area.w < 34 || area.h < 15) return;
  context.save();
  context.beginPath();
  context.rect(area.x, area.y, area.w - 3, area.h);
  context.clip();
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = on(area.node.dtype, isTitle ? SHADE : 0);
  const type = typeOf(archive, area.node);
  const name = shown(area.node.label, 60) + (area.node.like ? `.* ×${area.node.like}` : "");
  const wide = context.measureText(name).width;
  let text = name;
  if (area.w > wide + 110) text = `${name}  ${size(area.node.stored)}  ${type}`;
  else if (wide > area.w - 8) text = middle(name, Math.max(3, Math.floor((name.length * (area.w - 14)) / wide)));
  context.fillText(text, area.x + 5, area.y + 13);
  context.restore();
}

function typeOf(archive: Archive, node: Node): string {
  return node.dtype >= 0 ? archive.dtypes[node.dtype] : "mixed";
}

function describe(archive: Archive, node: Node): string {
  const type = typeOf(archive, node);
  return `${shown(node.path || node.label)} · ${type} · ${size(node.stored)} (${node.stored} bytes)${node.count > 1 ? ` · ${plural(node.count, "tensor")}` : ""}`;
}

function summaryOf(archive: Archive, node: Node, top: Area[]): string {
  const parts = top.slice(0, 5).map((area) => `${shown(area.node.label)} ${size(area.node.stored)}`);
  return `${plural(node.count, "tensor")} of ${size(node.stored)} in ${archive.summary.name}; the largest parts: ${parts.join(", ") || "none"}`;
}

function side(archive: Archive): HTMLElement {
  const { types } = archive.summary;
  const most = Math.max(1, ...types.map((type) => type.stored));
  const bars = types.slice(0, 8).map((type) => {
    const bar = h("div", { class: "bar" });
    bar.style.width = `${Math.max(1, (type.stored / most) * 100)}%`;
    bar.style.background = category(archive.dtypes.indexOf(type.name));
    return h("div", { class: "type", title: `${plural(type.tensors, "tensor")}, ${type.stored} bytes` }, h("span", { class: "mono" }, type.name), h("div", { class: "track" }, bar), h("span", { class: "num" }, size(type.stored)));
  });
  const order = [...archive.stored.keys()].sort((a, b) => archive.stored[b] - archive.stored[a]).slice(0, 6);
  const prefix = common(order.map((t) => archive.names[t]));
  const largest = order.map((t) =>
    h("div", { class: "largest" }, h("a", { href: "#", title: shown(archive.names[t]), onclick: (event: Event) => {
      event.preventDefault();
      showTensor(archive.a, archive.names[t]);
    } }, ending(archive.names[t].slice(prefix), 30)), h("span", { class: "num" }, size(archive.stored[t]))));
  return h("aside", null, h("h2", null, "By dtype"), ...bars, h("h2", null, "By layer ", h("span", { class: "dim" }, archive.stats ? "root mean square of weights" : "stored bytes")), byLayer(archive), h("h2", null, "Largest"), ...(largest.length ? largest : [h("p", { class: "dim" }, "no tensors")]));
}

/** How long the segments are that all names begin with. */
function common(names: string[]): number {
  let len = 0;
  for (let n = 0; names.length > 1 && n < names[0].length && names.every((name) => name[n] === names[0][n]); n += 1) if (/[./]/.test(names[0][n])) len = n + 1;
  return len;
}

function byLayer(archive: Archive): HTMLElement {
  const all = [...layerNames(archive)].sort(([a], [b]) => natural(a, b));
  const layers = all.slice(0, 256);
  if (layers.length < 2) return h("p", { class: "dim" }, "names have no numbered layers");
  const values = layers.map(([, tensors]) => (archive.stats ? rms(archive, tensors) : tensors.reduce((sum, t) => sum + archive.stored[t], 0)));
  const most = Math.max(...values, 1e-300);
  const [element, context] = canvas(280, 70, `${archive.stats ? "root mean square" : "stored bytes"} of ${layers.length} layers, at most ${most}`);
  const ratio = element.width / 280;
  context.scale(ratio, ratio);
  context.fillStyle = css("accent");
  const step = 280 / values.length;
  values.forEach((value, n) => {
    const high = Math.max(1, (value / most) * 66);
    context.fillRect(n * step, 68 - high, Math.max(1, step - (step > 4 ? 2 : 0)), high);
  });
  const name = (n: number) => h("span", { title: shown(layers[n][0]) }, ending(layers[n][0], 20));
  const ends = h("div", { class: "ends num" }, name(0), all.length > layers.length ? h("span", null, `${grouped(layers.length)} of ${grouped(all.length)}`) : null, name(layers.length - 1));
  return h("div", { class: "layers" }, element, ends);
}

function rms(archive: Archive, tensors: number[]): number {
  let [sum, count] = [0, 0];
  for (const t of tensors) {
    const found = archive.stats?.get(archive.names[t]);
    if (!found || typeof found.mean !== "number" || typeof found.std !== "number") continue;
    sum += (found.mean ** 2 + found.std ** 2) * found.finite;
    count += found.finite;
  }
  return count ? Math.sqrt(sum / count) : 0;
}

function strips(archive: Archive): HTMLElement {
  const section = h("section", null, h("h2", null, "Byte map ", h("span", { class: "dim" }, "header · data, in two shades by turns · padding; hatched where nobody claims the bytes")));
  const shownFiles = archive.summary.files.slice(0, 6);
  shownFiles.forEach((file, n) => {
    const place = h("div", { class: "strip" });
    const remark = h("div", { class: "dim right" });
    section.append(place, remark);
    void ask<ByteMap>(`extents?a=${archive.a}&file=${n}&cells=2048`).then((map) => {
      const wide = Math.max(280, section.clientWidth);
      const [element, context] = canvas(wide, 22, `bytes of ${file.name ?? "the file"}: ${map.kinds.map((kind, k) => `${kind} ${size(map.totals[k])}`).join(", ")}`);
      drawStrip(context, element.width, element.height, map);
      element.addEventListener("click", () => go({ tab: "bytes" }));
      place.replaceChildren(element);
      const lost = map.totals[3] + map.totals[4] + map.totals[5];
      remark.textContent = lost ? `▲ ${size(lost)} belong to no tensor, to several, or lie behind the end` : `${shown(file.name ?? "")} · ${size(map.len)}`;
    }, (error: Error) => {
      remark.textContent = error.message;
    });
  });
  if (archive.summary.files.length > shownFiles.length) section.append(h("p", { class: "dim" }, `and ${archive.summary.files.length - shownFiles.length} more files, on Bytes`));
  return section;
}

export function findings(archive: Archive, list: Finding[], title = "Checks"): HTMLElement {
  const section = h("section", { class: "findings" }, h("h2", null, title));
  if (!list.length) section.append(h("p", { class: "dim" }, "Nothing was noticed while the file was opened. Checks reads all of it."));
  for (const finding of list) {
    section.append(h("div", { class: `finding ${finding.severity}` },
      h("span", { class: "sign" }, `${SIGNS[finding.severity]} ${finding.severity}`),
      h("span", { class: "mono" }, finding.rule),
      h("span", null, finding.message),
      finding.t !== null && h("a", { href: "#", onclick: (event: Event) => {
        event.preventDefault();
        showTensor(archive.a, archive.names[finding.t!]);
      } }, middle(archive.names[finding.t], 48)),
      finding.range && h("a", { href: "#", class: "num", onclick: (event: Event) => {
        event.preventDefault();
        go({ tab: "bytes", slice: `${finding.source ?? 0}:${finding.range![0]}-${finding.range![1]}` });
      } }, `bytes ${grouped(finding.range[0])}–${grouped(finding.range[1])}`)));
  }
  return section;
}
