// Two archives side by side: what changed, where, and by how much.

import { Refusal, TooMuch, asJson, work } from "./ask.js";
import { table } from "./colours.js";
import { button, canvas, check, css, fill, h, select } from "./dom.js";
import { grouped, middle, plural, shape, short, shown, size } from "./format.js";
import { List } from "./list.js";
import { colour, sampled } from "./pane.js";
import { type Picture, domainOf, draw, fetchPicture, usualMap } from "./picture.js";
import { type Listed, go, state } from "./state.js";
import { Archive } from "./table.js";
import { compare as natural } from "./tree.js";
import { empty } from "./tensors.js";

interface Beside {
  name: string;
  dtype: string;
  shape: number[];
}

interface Change {
  change: "added" | "removed" | "renamed" | "changed" | "unreadable";
  name: string;
  a: Beside | null;
  b: Beside | null;
  values?: { numbers: number; different: number; max_abs: number | string | null; relative_l2: number | string | null; first: { index: number[] } | null; not_finite: number };
  error?: string;
}

interface Diff {
  equal: boolean;
  equal_tensors: number;
  changes: Change[];
  metadata: { tensor: string | null; key: string; a?: unknown; b?: unknown }[];
}

interface Options {
  rtol: string;
  atol: string;
  ignoreDtype: boolean;
  ignoreMetadata: boolean;
  namesOnly: boolean;
  from: string;
  to: string;
}

const options: Options = { rtol: "", atol: "", ignoreDtype: false, ignoreMetadata: false, namesOnly: false, from: "", to: "" };
const known = new Map<string, Diff>();

async function opened(a: number): Promise<Archive> {
  const found = state.archives.get(a) ?? (await Archive.open(a));
  state.archives.set(a, found);
  return found;
}

function question(a: number, b: number): string {
  let text = `diff?a=${a}&b=${b}`;
  if (options.rtol) text += `&rtol=${encodeURIComponent(options.rtol)}`;
  if (options.atol) text += `&atol=${encodeURIComponent(options.atol)}`;
  if (options.ignoreDtype) text += "&ignore-dtype=1";
  if (options.ignoreMetadata) text += "&ignore-metadata=1";
  if (options.namesOnly) text += "&names-only=1";
  if (options.from) text += `&from=${encodeURIComponent(options.from)}&to=${encodeURIComponent(options.to)}`;
  return text;
}

/** Bytes of both sides that are compared without a question. */
const MOST_UNASKED = 2 ** 30;

export function compareScreen(archives: Listed[], signal: AbortSignal): HTMLElement {
  const page = h("div", { class: "page compare" });
  if (archives.length < 2) {
    page.append(empty("Compare needs two files.", state.hello?.mode === "served" ? "`tenfold view A B` opens both." : "Drop a second file on this page."));
    return page;
  }
  const a = archives.some((listed) => listed.a === state.link.a) ? state.link.a : archives[0].a;
  const b = archives.some((listed) => listed.a === state.link.b) && state.link.b !== a ? state.link.b : archives.find((listed) => listed.a !== a)!.a;
  const choices = archives.map((listed): [string, string] => [String(listed.a), middle(listed.name, 60)]);
  const result = h("div");
  const field = (key: "rtol" | "atol" | "from" | "to", label: string, wide: number) => {
    const input = h("input", { value: options[key], "aria-label": label, placeholder: label, size: wide, spellcheck: false, onchange: () => {
      options[key] = input.value.trim();
    } });
    input.addEventListener("keydown", (event) => event.stopPropagation());
    return input;
  };
  page.append(h("div", { class: "controls" },
    h("label", null, "left ", select("left", choices, String(a), (value) => go({ a: Number(value) }))),
    button("⇄", () => go({ a: b, b: a }), { "aria-label": "exchange left and right" }),
    h("label", null, "right ", select("right", choices, String(b), (value) => go({ b: Number(value) }))),
    h("label", null, "tolerance ", field("rtol", "relative", 8), field("atol", "absolute", 8)),
    h("label", null, "names on the right: ", field("from", "begin with", 10), " → ", field("to", "are called", 10)),
    check("ignore dtype", options.ignoreDtype, (value) => (options.ignoreDtype = value)),
    check("ignore metadata", options.ignoreMetadata, (value) => (options.ignoreMetadata = value)),
    check("names only", options.namesOnly, (value) => (options.namesOnly = value)),
    button("compare", () => void again(true), { class: "on" })), result);
  let running = new AbortController();
  const again = (isAsked: boolean) => {
    // One at a time.
    running.abort();
    running = new AbortController();
    signal.addEventListener("abort", () => running.abort(), { once: true });
    return run(a, b, result, isAsked, running.signal);
  };
  void again(false);
  return page;
}

/** Whether a name is that of a file elsewhere, every byte of which is sent. */
function isRemote(archive: Archive): boolean {
  return /^[a-z][a-z0-9+.-]+:\/\//i.test(archive.summary.name);
}

/** Compares; names alone as long as nobody asked for all that the numbers take. */
async function run(a: number, b: number, place: HTMLElement, isAsked: boolean, signal: AbortSignal): Promise<void> {
  try {
    const [left, right] = await Promise.all([opened(a), opened(b)]);
    if (signal.aborted) return;
    const bytes = left.summary.stored + right.summary.stored;
    const isLarge = bytes > MOST_UNASKED || isRemote(left) || isRemote(right);
    const isNames = options.namesOnly || (isLarge && !isAsked && !known.has(question(a, b)));
    const asked = question(a, b) + (isNames && !options.namesOnly ? "&names-only=1" : "");
    let diff = known.get(asked) ?? null;
    if (!diff) {
      const stop = new AbortController();
      signal.addEventListener("abort", () => stop.abort(), { once: true });
      const bar = h("progress", { max: 1, value: 0, "aria-label": "comparing" });
      const told = h("span", { class: "num" });
      fill(place, h("p", null, "comparing ", bar, " ", told, " ", button("stop", () => stop.abort())));
      const step = await work(asked, (buffer) => asJson<Diff>(buffer), (found) => {
        bar.value = found.of ? found.done / found.of : 1;
        told.textContent = `${size(found.done)} of ${size(found.of)}`;
      }, stop.signal);
      diff = step?.result ?? null;
      if (signal.aborted) return;
      if (!diff) return fill(place, h("p", { class: "dim" }, "stopped"));
      known.set(asked, diff);
    }
    const offer = isNames && !options.namesOnly
      ? h("p", { class: "offer" }, "Names, types and shapes are compared, numbers are not yet. ", button(`compare all numbers, reads ${size(bytes)}`, () => void run(a, b, place, true, signal), { class: "on" }))
      : null;
    drawn(place, left, right, diff, isNames, offer, signal);
  } catch (error) {
    if (signal.aborted) return;
    const rule = error instanceof Refusal ? error.failure.rule : null;
    fill(place, empty("These two cannot be compared.", `${(error as Error).message}${rule ? ` [${rule}]` : ""}`));
  }
}

function drawn(place: HTMLElement, left: Archive, right: Archive, diff: Diff, isNames: boolean, offer: HTMLElement | null, signal: AbortSignal): void {
  const count = (kind: Change["change"]) => diff.changes.filter((change) => change.change === kind).length;
  const differ = diff.changes.filter((change) => change.change === "changed");
  const types = differ.filter((change) => change.a!.dtype !== change.b!.dtype).length;
  const both = diff.equal_tensors + differ.length + count("unreadable");
  const numbers = isNames ? (differ.length ? ` · ${grouped(differ.length)} of other types or shapes` : "") : ` · ${grouped(diff.equal_tensors)} equal · ${grouped(differ.length)} differ`;
  const headline = h("h2", { class: "headline" }, `${plural(both, "tensor")} in both${numbers} · ${grouped(count("removed"))} only left · ${grouped(count("added"))} only right${count("renamed") ? ` · ${count("renamed")} renamed` : ""}${types && !isNames ? ` · dtypes differ: ${types}` : ""}`);
  const side = h("section", { class: "beside3" }, h("p", { class: "dim" }, "Choose a change to see both sides."));
  let shown_ = new AbortController();
  let mark: (change: Change) => void = () => undefined;
  const show = (change: Change) => {
    // What the last one began is of no use any more.
    shown_.abort();
    shown_ = new AbortController();
    signal.addEventListener("abort", () => shown_.abort(), { once: true });
    mark(change);
    sides(left, right, change, side, shown_.signal);
  };
  const map = layerMap(left, right, diff, isNames, show);
  const [list, marked] = changes(diff, show);
  mark = marked;
  const remark = options.from ? `names on the right that begin with “${options.from}” are called “${options.to}…”` : isNames ? "numbers are not compared" : diff.equal ? "Nothing is different." : "relative difference is ‖a−b‖ / ‖a‖";
  fill(place, headline, offer ?? h("p", { class: "dim" }, remark), h("div", { class: "split even" }, map, side), list);
  const first = differ.reduce<Change | null>((best, change) => (rel(change) > (best ? rel(best) : -1) ? change : best), null);
  if (first) show(first);
}

function rel(change: Change): number {
  const value = change.values?.relative_l2;
  return typeof value === "number" ? value : change.values ? Infinity : -1;
}

/** Kinds of tensors that a map has rows for. */
const MOST_KINDS = 400;
/** What cannot be said by a number: other shapes, differences of NaN, what cannot be read. */
const NO_NUMBER = "#d55e00";

/** A row for each kind of tensor, a column for each layer; layers of an encoder are none of a decoder. */
function layerMap(left: Archive, right: Archive, diff: Diff, isNames: boolean, show: (change: Change) => void): HTMLElement {
  const changed = new Map(diff.changes.map((change) => [change.name, change]));
  const kinds = new Map<string, Map<number, Change | "equal">>();
  const stacks = new Set<string>();
  let layers = 0;
  for (const name of left.names) {
    const found = /^(.*?)(?:^|[./])(\d+)[./](.*)$/.exec(name);
    if (!found) continue;
    const other = changed.get(name);
    if (!other && right.place(name) === undefined && !options.from) continue;
    stacks.add(found[1]);
    const kind = `${found[1]}\0${found[3].replace(/\.weight$/, "")}`;
    const row = kinds.get(kind) ?? new Map<number, Change | "equal">();
    kinds.set(kind, row.set(Number(found[2]), other ?? "equal"));
    layers = Math.max(layers, Number(found[2]) + 1);
  }
  if (isNames) return h("section", null, h("p", { class: "dim" }, "A map of the differences comes with the numbers; the list below has what is different without them."));
  if (kinds.size === 0 || layers < 2 || layers > 4096) return h("section", null, h("p", { class: "dim" }, "Names have no numbered layers to draw a map of; the list below has every change."));
  const all = [...kinds].sort(([a], [b]) => natural(a, b)).map(([kind, row]): [string, Map<number, Change | "equal">] => {
    const [stack, rest] = kind.split("\0");
    return [stacks.size > 1 && stack ? `${stack}.*.${rest}` : rest, row];
  });
  const rows = all.slice(0, MOST_KINDS);
  const values = rows.flatMap(([, row]) => [...row.values()].map((cell) => (cell === "equal" ? 0 : rel(cell)))).filter((value) => Number.isFinite(value) && value >= 0);
  const most = Math.max(1e-12, ...values);
  const names = stacks.size > 1 ? 230 : 168;
  const wide = Math.max(4, Math.min(30, Math.floor((640 - names) / layers)));
  const high = 22;
  const [element, context] = canvas(names + layers * wide, rows.length * high + 20, `differences of ${rows.length} kinds of tensors in ${layers} layers, at most ${short(most)}; the list below says the same`);
  const ratio = element.width / (names + layers * wide);
  context.scale(ratio, ratio);
  context.font = "12px ui-monospace, monospace";
  context.textBaseline = "middle";
  const colours = table("viridis");
  rows.forEach(([kind, row], y) => {
    context.fillStyle = css("text");
    context.textAlign = "right";
    context.fillText(middle(kind, stacks.size > 1 ? 30 : 21), names - 8, y * high + high / 2);
    for (const [layer, cell] of row) {
      const value = cell === "equal" ? -1 : rel(cell);
      if (cell === "equal") context.fillStyle = css("same");
      else if (!Number.isFinite(value) || value < 0) context.fillStyle = NO_NUMBER;
      else {
        const n = Math.min(255, Math.floor((value / most) * 255)) * 3;
        context.fillStyle = `rgb(${colours[n]},${colours[n + 1]},${colours[n + 2]})`;
      }
      context.fillRect(names + layer * wide, y * high, wide - 1, high - 1);
    }
  });
  context.fillStyle = css("dim");
  context.textAlign = "center";
  const every = Math.max(1, Math.ceil(layers / 8));
  for (let layer = 0; layer < layers; layer += every) context.fillText(String(layer), names + (layer + 0.5) * wide, rows.length * high + 10);
  const hit = (event: MouseEvent): [string, number, Change | "equal"] | null => {
    const box = element.getBoundingClientRect();
    const row = rows[Math.floor((event.clientY - box.top) / high)];
    const layer = Math.floor((event.clientX - box.left - names) / wide);
    const cell = row?.[1].get(layer);
    return cell ? [row[0], layer, cell] : null;
  };
  element.addEventListener("mousemove", (event) => {
    const found = hit(event);
    element.title = found ? `${found[0]}, layer ${found[1]}: ${found[2] === "equal" ? "equal bit for bit" : what(found[2])}` : "";
  });
  element.addEventListener("click", (event) => {
    const found = hit(event);
    if (found && found[2] !== "equal") show(found[2]);
  });
  const [bar, inside] = canvas(130, 10, "colours");
  const barRatio = bar.width / 130;
  for (let x = 0; x < bar.width; x += 1) {
    const n = Math.min(255, Math.floor((x / bar.width) * 256)) * 3;
    inside.fillStyle = `rgb(${colours[n]},${colours[n + 1]},${colours[n + 2]})`;
    inside.fillRect(x, 0, 1, 10 * barRatio);
  }
  const swatch = (colour: string, name: string) => {
    const [box, fillIt] = canvas(14, 12, name);
    fillIt.fillStyle = colour;
    fillIt.fillRect(0, 0, box.width, box.height);
    return h("span", null, box, name);
  };
  const left_ = all.length - rows.length;
  return h("section", null, h("p", { class: "dim" }, "layer × kind; click opens the two side by side"), h("div", { class: "scroll" }, element), left_ > 0 ? h("p", { class: "dim" }, `and ${plural(left_, "more kind")}, which the list below has`) : null,
    h("p", { class: "legend dim" }, swatch(css("same"), "equal bit for bit"), h("span", null, "0", bar, short(most)), swatch(NO_NUMBER, "no number: other shape, NaN, unreadable")));
}

/** What is different, in a few words. */
function what(change: Change): string {
  if (change.error) return change.error;
  if (!change.values) return change.a && change.b ? "shapes differ" : change.a ? "only left" : "only right";
  return typeof change.values.relative_l2 === "number" ? `relative ${short(change.values.relative_l2)}` : "differs in numbers that are not finite";
}

/** All changes as a list, and what marks the one that is shown. */
function changes(diff: Diff, show: (change: Change) => void): [HTMLElement, (change: Change) => void] {
  const only = { changed: true, removed: true, added: true, renamed: true, unreadable: true } as Record<string, boolean>;
  let seen: Change[] = [];
  let chosen = -1;
  const signs: Record<Change["change"], string> = { changed: "≠", removed: "◂ left", added: "right ▸", renamed: "name", unreadable: "■" };
  const list = new List("listbox", "changes", (n, row) => {
    const change = seen[n];
    row.setAttribute("role", "option");
    row.classList.add("change");
    row.id = `change${n}`;
    row.classList.toggle("chosen", n === chosen);
    row.setAttribute("aria-selected", String(n === chosen));
    const type = (beside: Beside) => `${beside.dtype} ${shape(beside.shape)}`;
    const isTyped = change.a && change.b && change.a.dtype !== change.b.dtype;
    const what = change.a && change.b ? (isTyped ? `${change.a.dtype} → ${change.b.dtype} ${shape(change.b.shape)}` : type(change.b)) : type((change.a ?? change.b)!);
    const values = change.error ?? (change.values ? `rel ${short(change.values.relative_l2).padEnd(11)} max ${short(change.values.max_abs).padEnd(11)} ${grouped(change.values.different)} numbers` : change.change === "renamed" ? `→ ${shown(change.b!.name, 60)}` : change.change === "removed" ? "only left" : change.change === "added" ? "only right" : "shape differs");
    fill(row, h("span", { class: "accent" }, isTyped ? "dtype" : signs[change.change]), h("span", { class: "mono", title: shown(change.name) }, middle(change.name, 56)), h("span", { class: "mono dim" }, what), h("span", { class: "num" }, values));
    row.addEventListener("click", () => show(change));
  });
  list.element.classList.add("changes");
  const drawIt = () => {
    seen = diff.changes.filter((change) => only[change.change]).sort((a, b) => rel(b) - rel(a));
    list.set(seen.length);
    list.element.style.height = `${Math.min(320, seen.length * 20 + 4)}px`;
  };
  drawIt();
  const mark = (change: Change) => {
    chosen = seen.indexOf(change);
    list.refresh();
    if (chosen < 0) return list.element.removeAttribute("aria-activedescendant");
    list.show(chosen);
    list.element.setAttribute("aria-activedescendant", `change${chosen}`);
  };
  list.element.addEventListener("keydown", (event) => {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!by || !seen.length) return;
    event.preventDefault();
    event.stopPropagation();
    show(seen[Math.max(0, Math.min(seen.length - 1, chosen + by))]);
  });
  const tools = h("span", { class: "tools" }, ...(["changed", "removed", "added", "renamed", "unreadable"] as const).filter((kind) => diff.changes.some((change) => change.change === kind)).map((kind) => check({ changed: "differ", removed: "only left", added: "only right", renamed: "renamed", unreadable: "unreadable" }[kind], true, (value) => {
    only[kind] = value;
    chosen = -1;
    drawIt();
  })));
  const meta = diff.metadata.slice(0, 100).map((change) => h("tr", null, h("td", { class: "accent" }, "meta"), h("td", { class: "mono" }, (change.tensor ? `${middle(change.tensor, 30)} ` : "") + shown(change.key, 80)), h("td", { class: "mono" }, change.a === undefined ? "–" : shown(JSON.stringify(change.a), 80)), h("td", { class: "mono" }, change.b === undefined ? "–" : shown(JSON.stringify(change.b), 80))));
  const section = h("section", null, h("h2", null, "Changes ", h("span", { class: "dim" }, "the largest relative difference first "), tools), diff.changes.length ? list.element : h("p", { class: "dim" }, "None."),
    meta.length ? h("table", { class: "keys" }, h("caption", { class: "dim" }, `${plural(diff.metadata.length, "difference")} of metadata${diff.metadata.length > meta.length ? `, of which ${meta.length} are shown` : ""}`), h("tbody", null, ...meta)) : null);
  return [section, mark];
}

/** Left, right and right − left, with one domain and one part of the tensor for all. */
function sides(left: Archive, right: Archive, change: Change, place: HTMLElement, signal: AbortSignal): void {
  const head = h("h2", { class: "mono" }, middle(change.name, 60));
  if (!change.a || !change.b || change.a.shape.join() !== change.b.shape.join()) {
    fill(place, head, h("p", { class: "dim" }, change.a && change.b ? `shapes differ: ${shape(change.a.shape)} and ${shape(change.b.shape)}` : change.a ? "only on the left" : "only on the right"));
    return;
  }
  const [rows, columns] = [change.a.shape.at(-2) ?? 1, change.a.shape.at(-1) ?? 1];
  const fold = change.a.shape.length === 1 && columns > 64 ? Math.min(512, 2 ** Math.ceil(Math.log2(Math.sqrt(columns)) + 1)) : 0;
  const [realRows, realColumns] = fold ? [Math.ceil(columns / fold), fold] : [rows, columns];
  const pictures: (Picture | null)[] = [null, null];
  // Of more dimensions, the last two are seen at one index of the others.
  const others = change.a.shape.slice(0, -2);
  const at = change.a.shape.map(() => 0);
  const room = Math.max(140, Math.min(320, Math.floor(((place.clientWidth || 480) - 24) / 3)));
  const screens = ["left", "right", "right − left"].map((label) => {
    const square = Math.min(room / realColumns, room / realRows);
    const [wide, high] = square >= 1 ? [Math.floor(square) * realColumns, Math.floor(square) * realRows] : [room, Math.max(60, Math.min(room, Math.round((room * realRows) / realColumns)))];
    const [screen, context] = canvas(wide, high, `${label} of ${shown(change.name)}`);
    context.fillStyle = css("quiet");
    context.fillRect(0, 0, screen.width, screen.height);
    return screen;
  });
  const rect = { r0: 0, r1: realRows, c0: 0, c1: realColumns };
  const told = h("p", { class: "num" });
  const ends = h("p", { class: "dim" });
  let most: number | undefined;
  const load = () => {
    pictures.fill(null);
    [left, right].forEach((archive, n) => {
      const t = n === 0 ? archive.place(change.a!.name) : archive.place(change.b!.name) ?? archive.place(options.from + change.b!.name.slice(options.to.length));
      if (t === undefined) return;
      const asked = `tile?a=${archive.a}&t=${t}&r0=${rect.r0}&r1=${rect.r1}&c0=${rect.c0}&c1=${rect.c1}&h=${screens[n].height}&w=${screens[n].width}${fold ? `&fold=${fold}` : ""}${others.length ? `&at=${at.join(",")}` : ""}`;
      void fetchPicture(asked, (found) => {
        pictures[n] = found;
        redraw();
      }, signal, most).catch((error: Error) => {
        if (signal.aborted) return;
        if (!(error instanceof TooMuch)) {
          ends.textContent = error.message;
          return;
        }
        fill(ends, `A picture of each side takes ${size(error.bytes)}, because no part of what is stored can be undone by itself. `, button("read", () => {
          most = Infinity;
          load();
        }));
      });
    });
  };
  const redraw = () => {
    const [a, b] = pictures;
    if (!a || !b || a.mean.length !== b.mean.length) return;
    const domain = domainOf(Float64Array.from([...a.mean, ...b.mean]));
    const background = colour(css("quiet"));
    draw(screens[0], a, { cell: "mean", domain, map: usualMap(domain) }, background);
    draw(screens[1], b, { cell: "mean", domain, map: usualMap(domain) }, background);
    const difference = new Float64Array(a.mean.length);
    // What is not finite on either side has no difference, and is marked as it is in the two.
    const hasBad = a.hasBad || b.hasBad;
    const bad = () => new Uint32Array(hasBad ? difference.length : 0);
    const [nans, positive, negative] = [bad(), bad(), bad()];
    for (let n = 0; n < difference.length; n += 1) {
      difference[n] = b.mean[n] - a.mean[n];
      for (const { hasBad: isOdd, nans: own, positive: up, negative: down } of [a, b]) {
        if (!isOdd) continue;
        nans[n] += own[n];
        positive[n] += up[n];
        negative[n] += down[n];
      }
    }
    const most = difference.reduce((best, value) => Math.max(best, Math.abs(value) || 0), 0);
    const shownDifference = Object.create(b, { mean: { value: difference }, nans: { value: nans }, positive: { value: positive }, negative: { value: negative } }) as Picture;
    const own: [number, number] = most > 0 ? [-most, most] : [-1, 1];
    draw(screens[2], shownDifference, { cell: "mean", domain: own, map: "rdbu" }, background);
    const isExact = a.head.exact && b.head.exact;
    ends.textContent = `left and right ${short(domain[0])} … ${short(domain[1])}, difference ±${short(most)}; means of cells${isExact ? "" : `, of ${sampled(a)}`}${hasBad ? "; what is not finite on either side is magenta" : ""}`;
    screens.forEach((screen) => (screen.dataset["ready"] = a.finished && b.finished ? "1" : ""));
  };
  const zoom = (factor: number) => {
    const side = (from: number, to: number, most: number): [number, number] => {
      const len = Math.max(1, Math.min(most, Math.round((to - from) * factor)));
      const begin = Math.max(0, Math.min(most - len, Math.round((from + to - len) / 2)));
      return [begin, begin + len];
    };
    [rect.r0, rect.r1] = side(rect.r0, rect.r1, realRows);
    [rect.c0, rect.c1] = side(rect.c0, rect.c1, realColumns);
    load();
  };
  if (change.values) {
    const first = change.values.first ? ` · first at [${change.values.first.index.join(", ")}]` : "";
    told.textContent = `max |Δ| ${short(change.values.max_abs)} · rel ${short(change.values.relative_l2)} · ${grouped(change.values.different)} of ${grouped(change.values.numbers)} differ${first}`;
  }
  fill(place, head, h("div", { class: "three" }, ...screens.map((screen, n) => h("figure", null, screen, h("figcaption", { class: "dim" }, ["left", "right", "right − left"][n])))), told, ends,
    ...others.map((dim, axis) => {
      const text = h("span", { class: "num" }, `axis ${axis}: 0 of ${dim}`);
      const range = h("input", { type: "range", min: 0, max: dim - 1, value: "0", "aria-label": `index along axis ${axis}`, oninput: () => {
        text.textContent = `axis ${axis}: ${range.value} of ${dim}`;
      }, onchange: () => {
        at[axis] = Number(range.value);
        load();
      } });
      return h("div", { class: "slider" }, text, range);
    }),
    h("div", { class: "tools" }, button("+", () => zoom(0.5), { "aria-label": "zoom in" }), button("−", () => zoom(2), { "aria-label": "zoom out" }), button("open left", () => go({ tab: "tensors", a: left.a, t: change.a!.name })), button("open right", () => go({ tab: "tensors", a: right.a, t: change.b!.name }))));
  load();
}
