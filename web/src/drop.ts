// The page that files are dropped on: the library runs in a worker, and files are read there.

import { type Failure, Refusal, useTransport } from "./ask.js";
import { button, h, note } from "./dom.js";
import { shown } from "./format.js";
import { type Hello, go, state } from "./state.js";

declare const trustedTypes: { createPolicy(name: string, rules: { createScriptURL(text: string): string }): { createScriptURL(text: string): unknown } } | undefined;

interface Answer {
  id: number;
  ok: boolean;
  bytes: ArrayBuffer;
}

let worker: Worker;
let last = 0;
let about = "";
const waiting = new Map<number, { done: (bytes: ArrayBuffer) => void; failed: (error: Error) => void }>();
let sources: File[][] = [];

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

function start(): Promise<void> {
  address ??= workerAddress();
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
    void restart(event.message);
  });
  const inside = document.getElementById("wasm-source");
  return send({ kind: "begin", wasm: inside?.textContent ?? null }).then(() => undefined);
}

/** A worker that ended takes nothing with it but the file that ended it. */
async function restart(why: string): Promise<void> {
  worker.terminate();
  for (const { failed } of waiting.values()) failed(new Refusal({ error: `reading ${about} ended the worker: ${why}` }));
  waiting.clear();
  await start();
  for (const files of sources) await send({ kind: "open", files });
  note(`reading ${about} ended the worker; it was started again`);
}

function send(message: Record<string, unknown>): Promise<ArrayBuffer> {
  last += 1;
  const id = last;
  return new Promise((done, failed) => {
    waiting.set(id, { done, failed });
    worker.postMessage({ ...message, id });
  });
}

export async function dropped(refresh: () => Promise<void>): Promise<void> {
  await start();
  useTransport((question) => {
    about = state.hello?.archives.find((one) => one.a === state.link.a)?.name ?? "the file";
    return send({ kind: "call", question });
  });
  const input = h("input", { type: "file", multiple: true, id: "files", hidden: true, onchange: () => void open([...(input.files ?? [])]) });
  document.body.append(input);
  const open = async (files: File[]) => {
    if (!files.length) return;
    try {
      for (const group of groups(files)) {
        sources.push(group);
        await send({ kind: "open", files: group });
      }
      const before = state.hello?.archives.length ?? 0;
      await refresh();
      const archives = state.hello!.archives;
      const first = archives[before] ?? archives[archives.length - 1];
      if (archives.length - before === 2) go({ tab: "compare", a: archives[before].a, b: archives[before + 1].a });
      else if (first) go({ a: first.a });
    } catch (error) {
      note((error as Error).message);
    }
  };
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
    void collect(event.dataTransfer).then(open);
  });
}

/** Files, and those of folders. */
async function collect(data: DataTransfer | null): Promise<File[]> {
  const files: File[] = [];
  const entries = [...(data?.items ?? [])].map((item) => item.webkitGetAsEntry?.()).filter((entry): entry is FileSystemEntry => Boolean(entry));
  if (!entries.length) return [...(data?.files ?? [])];
  const walk = async (entry: FileSystemEntry): Promise<void> => {
    if (entry.isFile) files.push(await new Promise<File>((done, failed) => (entry as FileSystemFileEntry).file(done, failed)));
    else {
      const reader = (entry as FileSystemDirectoryEntry).createReader();
      for (;;) {
        const found = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
        if (!found.length) break;
        for (const one of found) await walk(one);
      }
    }
  };
  for (const entry of entries) await walk(entry);
  return files;
}

/** Shards belong to their index; every other file is one of its own, with the rest beside it. */
function groups(files: File[]): File[][] {
  const index = files.filter((file) => file.name.endsWith(".index.json"));
  const heads = index.length ? index : files.filter((file) => !/\.(json|txt|md|model|py)$/.test(file.name) || files.length === 1);
  const chosen = heads.length ? heads : files;
  return chosen.slice(0, 64).map((head) => [head, ...files.filter((file) => file !== head)]);
}

export function emptyDrop(hello: Hello): HTMLElement {
  const kinds = hello.formats.map((format) => format.name).join(", ");
  return h("div", { class: "empty drop" }, h("p", { class: "title" }, "Drop tensor files here"), h("p", null, button("choose files", () => document.getElementById("files")?.click(), { class: "on" })),
    h("p", { class: "dim" }, kinds), h("p", { class: "dim" }, "Files stay on this machine: the browser lets this page talk to no other. Of large files, only what is shown is read."),
    state.link.t ? h("p", null, `This link shows “${shown(state.link.t)}”: drop the file that it is in.`) : null);
}
