// The page that files are dropped on: the library runs in a worker, and files are read there.

import { type Failure, Refusal, ask, useTransport } from "./ask.js";
import { button, h, note } from "./dom.js";
import { plural, shown } from "./format.js";
import { type Hello, go, state } from "./state.js";
import type { Summary } from "./table.js";

declare const trustedTypes: { createPolicy(name: string, rules: { createScriptURL(text: string): string }): { createScriptURL(text: string): unknown } } | undefined;

interface Answer {
  id: number;
  ok: boolean;
  bytes: ArrayBuffer;
}

/** A file, and its path in what was dropped. */
interface Item {
  file: File;
  path: string;
}

/** Archives that are opened of one folder, at most. */
const MOST = 1000;

let worker: Worker;
let last = 0;
let about = "";
const waiting = new Map<number, { done: (bytes: ArrayBuffer) => void; failed: (error: Error) => void }>();
/** What was opened and closed, for a worker that takes the place of one that ended. */
const history_: Record<string, unknown>[] = [];
/** Whether the library reads all formats: the smaller one, of the first ten, is loaded first. A page that is one file has all. */
let hasAll = Boolean(document.getElementById("wasm-source"));
/** Why there is no worker and will be none. */
let lost = "";

/** One policy, for one name: the worker's. */
function workerAddress(): string {
  const inside = document.getElementById("worker-source");
  const address = inside ? URL.createObjectURL(new Blob([inside.textContent ?? ""], { type: "text/javascript" })) : "worker.js";
  if (typeof trustedTypes === "undefined") return address;
  const policy = trustedTypes.createPolicy("tenfold", {
    createScriptURL: (text) => {
      if (text !== address) throw new TypeError("only the worker is loaded");
      return text;
    },
  });
  return policy.createScriptURL(address) as string;
}

let address: string | null = null;
/** Whether the worker has begun and knows what is open. */
let ready: Promise<void> = Promise.resolve();

/** Reading a file ended the worker. */
class Ended extends Refusal {}

/** Starts a worker that knows what the last one knew. One that cannot begin would not the next time either. */
async function start(): Promise<void> {
  address ??= workerAddress();
  let isReady = false;
  worker = new Worker(address);
  worker.addEventListener("message", (event: MessageEvent<Answer>) => {
    const found = waiting.get(event.data.id);
    waiting.delete(event.data.id);
    if (!found) return;
    if (event.data.ok) found.done(event.data.bytes);
    else found.failed(new Refusal(JSON.parse(new TextDecoder().decode(event.data.bytes)) as Failure));
  });
  worker.addEventListener("error", (event) => {
    event.preventDefault();
    if (isReady) restart(event.message);
    else fail(new Refusal({ error: event.message || "worker.js, which belongs beside this page, cannot be loaded" }));
  });
  const inside = document.getElementById("wasm-source");
  try {
    await post({ kind: "begin", wasm: inside?.textContent ?? null, module: hasAll ? "tenfold-all.bin" : "tenfold.bin" });
    for (const message of history_) await post(message);
  } catch (error) {
    lost = (error as Error).message;
    throw error;
  }
  isReady = true;
}

/** Ends the worker, and tells why whoever waits for an answer of it. */
function fail(why: Refusal): void {
  worker.terminate();
  const all = [...waiting.values()];
  waiting.clear();
  for (const { failed } of all) failed(why);
}

/** A worker that ended takes nothing with it but the file that ended it. */
function restart(why: string): void {
  fail(new Ended({ error: `reading ${about} ended the worker: ${why}` }));
  ready = start();
  ready.then(() => note(`reading ${about} ended the worker; it was started again`), (error: Error) => note(error.message));
}

/** Takes the library that reads all formats instead of the first ten. */
function takeAll(): Promise<void> {
  note("loading what reads the other formats …");
  hasAll = true;
  fail(new Refusal({ error: "the library is loaded anew" }));
  ready = start();
  return ready;
}

function post(message: Record<string, unknown>): Promise<ArrayBuffer> {
  last += 1;
  const id = last;
  return new Promise((done, failed) => {
    waiting.set(id, { done, failed });
    worker.postMessage({ ...message, id });
  });
}

async function send(message: Record<string, unknown>): Promise<ArrayBuffer> {
  if (lost) throw new Refusal({ error: lost });
  await ready;
  return post(message);
}

/** The same, for what another worker has to know too. */
async function sendForGood(message: Record<string, unknown>): Promise<ArrayBuffer> {
  const answer = await send(message);
  history_.push(message);
  return answer;
}

export async function dropped(refresh: () => Promise<void>): Promise<void> {
  ready = start();
  await ready;
  useTransport((question) => {
    about = state.hello?.archives.find((one) => one.a === state.link.a)?.name ?? "the file";
    return send({ kind: "call", question });
  });
  const chooser = (id: string, isFolder: boolean) => {
    const input = h("input", { type: "file", multiple: true, id, hidden: true, onchange: () => {
      const items = [...(input.files ?? [])].map((file) => ({ file, path: file.webkitRelativePath || file.name }));
      // The same one may be chosen again.
      input.value = "";
      void open(items);
    } });
    input.webkitdirectory = isFolder;
    document.body.append(input);
  };
  let opened = 0;
  const open = async (items: Item[]) => {
    if (!items.length) return;
    try {
      const first = await openAll(items);
      // What is open was asked of a worker that may not be there any more.
      await refresh();
      if (first.length === 2) go({ tab: "compare", a: first[0], b: first[1] });
      else if (first.length) go({ a: first[0] });
    } catch (error) {
      note((error as Error).message);
    }
    opened += 1;
    // For the tests: how often something was dropped and opened.
    document.documentElement.dataset["opened"] = String(opened);
  };
  chooser("files", false);
  chooser("folder", true);
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.documentElement.classList.add("dragging");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.documentElement.classList.remove("dragging");
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.documentElement.classList.remove("dragging");
    void collect(event.dataTransfer).then(open, (error: Error) => note(error.message));
  });
}

/** Files, and those of folders, with their paths. */
async function collect(data: DataTransfer | null): Promise<Item[]> {
  const items: Item[] = [];
  const entries = [...(data?.items ?? [])].map((item) => item.webkitGetAsEntry?.()).filter((entry): entry is FileSystemEntry => Boolean(entry));
  if (!entries.length) return [...(data?.files ?? [])].map((file) => ({ file, path: file.name }));
  const walk = async (entry: FileSystemEntry): Promise<void> => {
    if (entry.isFile) {
      const file = await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed));
      items.push({ file, path: entry.fullPath.replace(/^\//, "") });
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const found = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
      if (!found.length) break;
      for (const one of found) await walk(one);
    }
  };
  for (const entry of entries) await walk(entry);
  return items;
}

let files = 0;

/**
 * Opens what was dropped together. A folder is one model, as it is for the command; one that is none is opened file by file,
 * and so are files without a folder. Gives the number of the first archive of each.
 */
async function openAll(items: Item[]): Promise<number[]> {
  const before = history_.length;
  try {
    return await tryAll(items);
  } catch (error) {
    if (!(error instanceof Unread)) throw error;
  }
  // It may be of a format that the other library reads; it begins anew with these files.
  history_.length = before;
  await takeAll();
  return tryAll(items);
}

/** Something could not be opened, and not all formats were tried. */
class Unread extends Error {}

async function tryAll(items: Item[]): Promise<number[]> {
  const first = files;
  files += items.length;
  const paths = items.map((item) => item.path);
  let isSent = false;
  let opened = 0;
  let left = 0;
  /** Adds an archive: of a file, or of a folder, whose path ends with a slash. */
  const add = async (path: string, name: string): Promise<number> => {
    const message = isSent ? { kind: "open", first, name, path } : { kind: "open", first, name, path, paths, files: items.map((item) => item.file) };
    isSent = true;
    opened += 1;
    return Number(new TextDecoder().decode(await sendForGood(message)));
  };
  const summaryOf = async (a: number): Promise<Summary | Failure> => {
    try {
      return await ask<Summary>(`summary?a=${a}`);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (!hasAll && !(error instanceof Ended)) throw new Unread();
      return error.failure;
    }
  };
  const { formats } = await ask<Hello>("hello");
  const endings = (isRead: boolean) => formats.filter((format) => format.is_read === isRead).flatMap((format) => format.extensions).map((extension) => `.${extension.replace(/^\./, "")}`);
  const isOf = (path: string, of: string[]) => of.some((ending) => path.toLowerCase().endsWith(ending));
  const [read, further] = [endings(true), endings(false)];
  if (!hasAll && paths.some((path) => isOf(path, further) && !isOf(path, read) && !/\.ya?ml$/.test(path))) {
    throw new Unread();
  }
  const isKnown = (path: string) => isOf(path, read);
  const inFolder = (folder: string) => paths.filter((path) => path.startsWith(folder) && !path.slice(folder.length).includes("/"));

  /** Files that lie side by side: each by itself, unless it is part of one that was opened before. */
  const openFiles = async (folder: string): Promise<number[]> => {
    const here = inFolder(folder).sort();
    const indexes = here.filter((path) => path.endsWith(".index.json"));
    const others = here.filter((path) => isKnown(path) && !indexes.includes(path));
    const heads = [...indexes, ...others];
    const found: number[] = [];
    const parts = new Set<string>();
    // What nobody knows by its name is tried too, where there is nothing else.
    for (const path of heads.length || folder ? heads : here) {
      if (parts.has(path)) continue;
      if (opened >= MOST) {
        left += 1;
        continue;
      }
      const a = await add(path, path);
      const summary = await summaryOf(a);
      found.push(a);
      if (!("error" in summary)) for (const { name } of summary.files) if (name) parts.add(folder + name);
    }
    return found;
  };

  const openFolder = async (folder: string): Promise<number[]> => {
    if (opened >= MOST) {
      left += 1;
      return [];
    }
    const whole = await add(folder, folder.slice(0, -1));
    const summary = await summaryOf(whole);
    if (!("error" in summary)) {
      for (const name of summary.passed_over) if (paths.includes(folder + name)) await add(folder + name, folder + name);
      return [whole];
    }
    // No model: its files, and the folders in it, are looked at one by one.
    const below = new Set(paths.filter((path) => path.startsWith(folder)).map((path) => path.slice(folder.length).split("/")).filter((parts) => parts.length > 1).map(([name]) => `${folder}${name}/`));
    const found = await openFiles(folder);
    for (const inner of [...below].sort()) found.push(...await openFolder(inner));
    if (!found.length) return folder.slice(0, -1).includes("/") ? (await close(whole), []) : [whole];
    await close(whole);
    return found;
  };
  const close = (a: number) => sendForGood({ kind: "call", question: `close?a=${a}` });

  const found = await openFiles("");
  for (const folder of [...new Set(paths.filter((path) => path.includes("/")).map((path) => `${path.split("/")[0]}/`))]) found.push(...await openFolder(folder));
  if (left) note(`${plural(left, "more file")} or folders were not opened: ${MOST} are the most at once`);
  return found;
}

export function emptyDrop(hello: Hello): HTMLElement {
  const kinds = hello.formats.map((format) => format.name).join(", ");
  return h("div", { class: "empty drop" }, h("p", { class: "title" }, "Drop tensor files or model folders here"),
    h("p", null, button("choose files", () => document.getElementById("files")?.click(), { class: "on" }), " ", button("choose a folder", () => document.getElementById("folder")?.click())),
    h("p", { class: "dim" }, kinds), h("p", { class: "dim" }, "Files stay on this machine: the browser lets this page talk to no other. Of large files, only what is shown is read."),
    state.link.t ? h("p", null, `This link shows “${shown(state.link.t)}”: drop the file that it is in.`) : null);
}
