// The one way to ask: a path in, bytes out. Served, it is a request; dropped, it is a message to the worker.

export interface Failure {
  error: string;
  rule?: string | null;
  tensor?: string | null;
  range?: [number, number] | null;
}

/** What is wrong, in the words of the library. */
export class Refusal extends Error {
  constructor(readonly failure: Failure, readonly status = 0) {
    super(failure.error);
  }
}

export type Transport = (question: string) => Promise<ArrayBuffer>;

let transport: Transport = () => Promise.reject(new Refusal({ error: "nothing is open" }));

export function useTransport(made: Transport): void {
  transport = made;
}

export async function ask<T>(question: string): Promise<T> {
  return JSON.parse(new TextDecoder().decode(await transport(question))) as T;
}

export function askBytes(question: string): Promise<ArrayBuffer> {
  return transport(question);
}

/** A head, and columns of numbers. */
export class Columns<H> {
  readonly head: H & { columns: { name: string; type: string; at: number; count: number }[] };
  private readonly begin: number;

  constructor(private readonly buffer: ArrayBuffer) {
    const len = new DataView(buffer).getUint32(0, true);
    this.head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, len)));
    this.begin = Math.ceil((4 + len) / 8) * 8;
  }

  private find(name: string) {
    return this.head.columns.find((column) => column.name === name);
  }

  f64(name: string): Float64Array {
    const found = this.find(name);
    return found ? new Float64Array(this.buffer, this.begin + found.at, found.count) : new Float64Array();
  }

  u32(name: string): Uint32Array {
    const found = this.find(name);
    return found ? new Uint32Array(this.buffer, this.begin + found.at, found.count) : new Uint32Array();
  }

  u8(name: string): Uint8Array {
    const found = this.find(name);
    return found ? new Uint8Array(this.buffer, this.begin + found.at, found.count) : new Uint8Array();
  }
}

export interface Step<R> {
  done: number;
  of: number;
  finished: boolean;
  result?: R;
}

/** What would be read without having been asked for. */
export class TooMuch extends Error {
  constructor(readonly bytes: number) {
    super("that would read too much");
  }
}

/** Goes on with a job, about 50 ms at a time, until it is finished or somebody aborts; begins none that reads more than `most`. */
export async function work<S extends { finished: boolean }>(
  begin: string,
  read: (buffer: ArrayBuffer) => S,
  seen: (step: S) => void,
  signal: AbortSignal,
  most = Infinity,
): Promise<S | null> {
  if (signal.aborted) return null;
  const { job, of } = await ask<{ job: number; of?: number | string }>(begin);
  let bytes = 2 << 20;
  try {
    if (of !== undefined && Number(of) > most) throw new TooMuch(Number(of));
    while (!signal.aborted) {
      const from = performance.now();
      const step = read(await askBytes(`step?job=${job}&bytes=${Math.round(bytes)}`));
      const took = performance.now() - from;
      bytes = Math.min(1 << 30, Math.max(2 << 20, bytes * Math.min(4, Math.max(0.25, 50 / Math.max(1, took)))));
      if (signal.aborted) break;
      seen(step);
      if (step.finished) return step;
    }
    return null;
  } finally {
    void ask(`drop?job=${job}`).catch(() => undefined);
  }
}

export function asJson<R>(buffer: ArrayBuffer): Step<R> {
  return JSON.parse(new TextDecoder().decode(buffer)) as Step<R>;
}

/** Asks the server that the page came from, with the token that it gave for the code in the address. */
export async function served(): Promise<void> {
  const code = /(?:^#|&)code=([0-9a-f]+)/.exec(location.hash)?.[1];
  if (code) {
    const rest = location.hash.replace(/^#/, "").split("&").filter((part) => !part.startsWith("code="));
    history.replaceState(null, "", rest.length ? `#${rest.join("&")}` : location.pathname);
    const answer = await fetch("api/token", { headers: { Authorization: `Code ${code}` }, cache: "no-store" });
    if (!answer.ok) throw new Refusal((await answer.json()) as Failure, answer.status);
    sessionStorage.setItem("token", ((await answer.json()) as { token: string }).token);
  }
  useTransport(async (question) => {
    let answer: Response;
    try {
      const token = sessionStorage.getItem("token") ?? "";
      answer = await fetch(`api/${question}`, { headers: { Authorization: `Bearer ${token}` }, cache: "no-store" });
    } catch {
      throw new Refusal({ error: "the server has ended; start `tenfold view` again" });
    }
    if (!answer.ok) throw new Refusal((await answer.json()) as Failure, answer.status);
    return answer.arrayBuffer();
  });
}
