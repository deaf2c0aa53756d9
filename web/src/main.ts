// The frame: name and format, six tabs, keys.

import { Refusal, ask, askBytes, served } from "./ask.js";
import { bytesScreen } from "./bytes.js";
import { checks } from "./checks.js";
import { compareScreen } from "./compare.js";
import { button, fill, h, note, select, marked } from "./dom.js";
import { dropped, emptyDrop } from "./drop.js";
import { grouped, middle, shown, size } from "./format.js";
import { help } from "./help.js";
import { metadata } from "./metadata.js";
import { overview } from "./overview.js";
import { type Hello, TABS, type Tab, go, onLink, readLink, showTensor, state } from "./state.js";
import { Archive } from "./table.js";
import { type TensorsScreen, empty, tensors } from "./tensors.js";

const names: Record<Tab, string> = { overview: "Overview", tensors: "Tensors", bytes: "Bytes", metadata: "Metadata", compare: "Compare", checks: "Checks" };
const root = document.getElementById("app")!;
const header = h("header", { class: "top" });
const body = h("div", { id: "screen", class: "screen-holder", tabIndex: -1 });
let screen: TensorsScreen | null = null;
/** Ends what the screen that is shown has begun. */
let leaving = new AbortController();
let drawn = "";

function drawHeader(): void {
  const { hello, archive, link } = state;
  const listed = hello?.archives ?? [];
  const current = listed.find((one) => one.a === link.a);
  const name = listed.length > 1
    ? select("file", listed.map((one): [string, string] => [String(one.a), middle(one.name, 48)]), String(link.a), (value) => go({ a: Number(value), t: "", slice: "", filter: "" }))
    : h("span", { title: shown(current?.name ?? "") }, middle(current?.name ?? "", 60));
  const about = archive ? ` · ${archive.summary.format_name ?? "no format"}${archive.summary.version ? ` ${archive.summary.version}` : ""} · ${size(archive.summary.bytes)}` : "";
  fill(header, h("strong", null, "tenfold"), h("span", { class: "file" }, name, h("span", { class: "dim" }, about)),
    h("nav", { "aria-label": "screens" }, ...TABS.map((tab, n) => h("a", { href: `#tab=${tab}`, class: tab === link.tab ? "on" : "", "aria-current": tab === link.tab ? "page" : undefined, title: `key ${n + 1}`, onclick: (event: Event) => {
      event.preventDefault();
      go({ tab });
    } }, names[tab]))),
    h("span", { class: "tools" }, state.hello?.mode === "dropped" ? button("open", () => document.getElementById("files")?.click()) : null, button("◐", otherTheme, { title: "light or dark", "aria-label": "light or dark" }), button("? keys", help)));
}

const DARK = matchMedia("(prefers-color-scheme: dark)");

/** What was chosen before, else what the system prefers. */
function setTheme(): void {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem("theme");
  } catch {
    // Some browsers keep nothing for pages from files.
  }
  document.documentElement.dataset["theme"] = kept ?? (DARK.matches ? "dark" : "light");
}

function otherTheme(): void {
  const other = document.documentElement.dataset["theme"] === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = other;
  try {
    localStorage.setItem("theme", other);
  } catch {
    // It holds until the page is closed.
  }
  drawScreen();
}

async function show(): Promise<void> {
  const { hello, link } = state;
  if (!hello) return;
  const listed = hello.archives.find((one) => one.a === link.a) ?? hello.archives[0];
  if (!listed) {
    drawHeader();
    fill(body, hello.mode === "dropped" ? emptyDrop(hello) : empty("Nothing is open.", "`tenfold view FILE` opens a file."));
    return;
  }
  if (listed.a !== link.a) go({ a: listed.a }, true);
  const known = state.archives.get(listed.a);
  if (known) state.archive = known;
  else {
    state.archive = null;
    state.failure = null;
    drawHeader();
    fill(body, h("p", { class: "dim opening", role: "status" }, `opening ${shown(listed.name)} …`));
    try {
      state.archive = await Archive.open(listed.a);
      state.archives.set(listed.a, state.archive);
    } catch (error) {
      state.failure = error instanceof Refusal ? error.failure : { error: (error as Error).message };
    }
    if (state.link.a !== listed.a) return;
  }
  drawScreen();
}

function drawScreen(): void {
  const { archive, failure, link, hello } = state;
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  drawHeader();
  document.title = `${archive ? `${archive.summary.name} · ` : ""}tenfold`;
  screen = null;
  drawn = link.tab;
  if (link.tab === "compare") return fill(body, compareScreen(hello?.archives ?? [], signal));
  if (!archive) return fill(body, broken(failure?.error ?? "it cannot be opened", failure?.rule ?? null, failure?.range ?? null));
  if (link.tab === "tensors") {
    screen = tensors(archive, signal);
    return fill(body, screen.element);
  }
  fill(body, { overview, bytes: bytesScreen, metadata, checks }[link.tab](archive, signal));
}

/** A file that cannot be read says why, in the words of the library. */
function broken(why: string, rule: string | null, range: [number, number] | null): HTMLElement {
  return h("div", { class: "empty broken" }, h("p", { class: "title" }, "■ This file cannot be opened."), h("p", null, ...marked(why)),
    rule ? h("p", { class: "mono dim" }, rule, range ? ` · byte ${grouped(range[0])}` : "") : null,
    h("p", { class: "dim" }, ...marked(state.hello?.mode === "dropped" ? "Nothing was changed. Drop another file, or choose one with “open”." : "Nothing was changed. `tenfold verify` lists all that is wrong with it.")));
}

document.addEventListener("keydown", (event) => {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) || document.querySelector("dialog[open]")) return;
  const tab = TABS[Number(event.key) - 1];
  if (tab && event.key !== "0") go({ tab });
  else if (event.key === "?") help();
  else if (event.key === "Escape" && state.link.tab !== "overview") history.back();
  else if (screen?.keys(event.key, event)) void 0;
  else if (event.key === "/" && state.archive) {
    go({ tab: "tensors" });
    document.querySelector<HTMLInputElement>(".filter")?.focus();
  } else return;
  event.preventDefault();
});

document.addEventListener("paste", (event) => {
  if (/^(INPUT|TEXTAREA)$/.test((event.target as HTMLElement).tagName)) return;
  const name = event.clipboardData?.getData("text/plain").trim();
  if (!name || !state.archive) return;
  if (state.archive.place(name) !== undefined) showTensor(state.archive.a, name);
  else note("there is no tensor of that name");
});

/** Asks again what there is, and shows it. */
export async function refresh(): Promise<void> {
  state.hello = await ask<Hello>("hello");
  await show();
}

async function begin(): Promise<void> {
  setTheme();
  root.replaceChildren(header, body);
  drawHeader();
  try {
    if (document.documentElement.dataset["mode"] === "drop") await dropped(refresh);
    else await served();
    state.hello = await ask<Hello>("hello");
    // Not before: nobody is told yet when it changes.
    state.link = readLink();
  } catch (error) {
    const status = error instanceof Refusal ? error.status : 0;
    fill(body, empty(status === 401 || status === 403 ? "This page needs its address." : "The page cannot start.", (error as Error).message));
    return;
  }
  onLink(() => {
    // Views of a tensor change in place.
    if (state.link.tab === drawn && state.link.tab !== "tensors" && state.archive?.a === state.link.a && state.link.tab !== "compare" && state.link.tab !== "bytes") return drawHeader();
    void show();
  });
  const { pair } = state.hello;
  if (pair && !location.hash.includes("=")) go({ tab: "compare", a: pair[0], b: pair[1] }, true);
  if (state.hello.mode === "served") window.setInterval(() => void ask("hello").catch(() => undefined), 30000);
  DARK.addEventListener("change", () => {
    setTheme();
    drawScreen();
  });
  await show();
}

// For the console, and for the tests.
Object.assign(globalThis, { tenfold: { ask: askBytes } });

void begin();
