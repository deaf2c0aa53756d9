// The library in a worker: reads files synchronously, answers questions one after the other.

interface Exports {
  memory: WebAssembly.Memory;
  alloc(len: number): number;
  /** The number of the archive, or -1. */
  open(): number;
  call(): number;
  result(): bigint;
}

interface Message {
  id: number;
  kind: "begin" | "open" | "call";
  /** Of `begin`: the library as text, or which of the two files it is. */
  wasm?: string | null;
  module?: string;
  /** Of `open`: the number of the first file, what is opened, under which name; and the files and their paths, the first time. */
  first?: number;
  path?: string;
  name?: string;
  paths?: string[];
  files?: File[];
  question?: string;
}

declare class FileReaderSync {
  readAsArrayBuffer(blob: Blob): ArrayBuffer;
}

const files: File[] = [];
const reader = new FileReaderSync();
let library: Exports;

const host = {
  read(file: number, at: number, to: number, len: number): number {
    try {
      const bytes = new Uint8Array(reader.readAsArrayBuffer(files[file].slice(at, at + (len >>> 0))));
      if (bytes.length !== len >>> 0) return 0;
      new Uint8Array(library.memory.buffer).set(bytes, to >>> 0);
      return 1;
    } catch {
      return 0;
    }
  },
  size: (file: number): number => files[file].size,
};

/** The library is packed, so that it is as small behind servers that pack nothing. */
function unpacked(packed: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<WebAssembly.WebAssemblyInstantiatedSource> {
  const stream = packed.pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.instantiateStreaming(new Response(stream, { headers: { "Content-Type": "application/wasm" } }), { host });
}

async function begin(text: string | null | undefined, module: string): Promise<void> {
  // A file of its own beside the worker, or text in a page that is one file.
  let packed: ReadableStream<Uint8Array<ArrayBuffer>> | null;
  if (text) {
    const digits = atob(text.trim());
    const bytes = new Uint8Array(digits.length);
    for (let n = 0; n < digits.length; n += 1) bytes[n] = digits.charCodeAt(n);
    packed = new Blob([bytes]).stream();
  } else {
    const answer = await fetch(module);
    if (!answer.ok) throw new Error(`${module}, which belongs beside this page, cannot be loaded (${answer.status})`);
    packed = answer.body;
  }
  if (!packed) throw new Error("the library is empty");
  library = (await unpacked(packed)).instance.exports as unknown as Exports;
}

function put(text: string): void {
  const bytes = new TextEncoder().encode(text);
  // Memory may grow while room is made: its buffer is looked up afterwards.
  const at = library.alloc(bytes.length) >>> 0;
  new Uint8Array(library.memory.buffer).set(bytes, at);
}

function result(): ArrayBuffer {
  const found = library.result();
  const [len, at] = [Number(found >> 32n), Number(found & 0xffffffffn)];
  return library.memory.buffer.slice(at, at + len) as ArrayBuffer;
}

const encoded = (text: string): ArrayBuffer => new TextEncoder().encode(text).buffer as ArrayBuffer;

async function answer(message: Message): Promise<[boolean, ArrayBuffer]> {
  if (message.kind === "begin") {
    try {
      await begin(message.wasm, message.module ?? "");
    } catch (error) {
      return [false, encoded(JSON.stringify({ error: `the library cannot be loaded: ${(error as Error).message}` }))];
    }
    return [true, new ArrayBuffer(0)];
  }
  if (message.kind === "open") {
    for (const [n, file] of (message.files ?? []).entries()) files[message.first! + n] = file;
    // No name of a file has a zero byte.
    put([message.first, message.name, message.path, ...(message.paths ?? [])].map((field) => `${field}\0`).join(""));
    return [true, encoded(String(library.open()))];
  }
  put(message.question ?? "");
  const isGood = library.call() === 1;
  return [isGood, result()];
}

self.addEventListener("message", (event: MessageEvent<Message>) => {
  void answer(event.data).then(([ok, bytes]) => (self as unknown as Worker).postMessage({ id: event.data.id, ok, bytes }, [bytes]), (error: unknown) => {
    // What traps ends the worker: the page starts another.
    setTimeout(() => {
      throw error;
    });
  });
});
