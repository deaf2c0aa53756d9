// The tensors of an archive, as columns: nothing is made for a tensor before it is shown.

import { Columns, ask, askBytes } from "./ask.js";

export interface Summary {
  name: string;
  format: string | null;
  format_name: string | null;
  version: string | null;
  bytes: number;
  files: { name: string | null; bytes: number }[];
  tensors: number;
  elements: number;
  stored: number;
  dense: number;
  types: { name: string; tensors: number; elements: number; stored: number }[];
  metadata: number;
  errors: number;
  warnings: number;
  notes: number;
  unreadable: number;
  checksums: number;
  passed_over: string[];
}

export interface Finding {
  severity: "error" | "warning" | "note";
  rule: string;
  tensor: string | null;
  file: string;
  range: [number, number] | null;
  message: string;
  t: number | null;
  source: number | null;
}

export interface Figures {
  name: string;
  dtype: string;
  shape: number[];
  error?: string;
  elements: number;
  numbers: number;
  finite: number;
  min: number | string | null;
  max: number | string | null;
  abs_max: number | string | null;
  mean: number | string | null;
  std: number | string | null;
  zeros: number;
  nan: number;
  positive_infinities: number;
  negative_infinities: number;
  subnormals: number;
  histogram?: { edges: number[]; counts: number[] };
}

export interface Stats {
  tensors: Figures[];
  total: Figures;
}

/** A name may begin with a mark of byte order, which is part of it. */
const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

interface Head {
  tensors: number;
  dtypes: string[];
  layouts: string[];
}

export class Archive {
  readonly count: number;
  readonly dtypes: string[];
  readonly layouts: string[];
  readonly stored: Float64Array;
  readonly elements: Float64Array;
  readonly offset: Float64Array;
  readonly source: Uint32Array;
  readonly dtype: Uint32Array;
  readonly layout: Uint32Array;
  readonly flags: Uint8Array;
  private readonly dims: Float64Array;
  private readonly dimsEnd: Uint32Array;
  private readonly nameEnd: Uint32Array;
  private readonly nameBytes: Uint8Array;
  private decoded: string[] | null = null;
  private lower: string[] | null = null;
  private places: Map<string, number> | null = null;
  findings: Finding[] = [];
  /** Figures of all tensors, once somebody asked for them. */
  stats: Map<string, Figures> | null = null;

  private constructor(
    readonly a: number,
    readonly summary: Summary,
    columns: Columns<Head>,
  ) {
    this.count = columns.head.tensors;
    this.dtypes = columns.head.dtypes;
    this.layouts = columns.head.layouts;
    this.stored = columns.f64("stored");
    this.elements = columns.f64("elements");
    this.offset = columns.f64("offset");
    this.source = columns.u32("source");
    this.dtype = columns.u32("dtype");
    this.layout = columns.u32("layout");
    this.flags = columns.u8("flags");
    this.dims = columns.f64("dims");
    this.dimsEnd = columns.u32("dims_end");
    this.nameEnd = columns.u32("name_end");
    this.nameBytes = columns.u8("names");
  }

  static async open(a: number): Promise<Archive> {
    const summary = ask<Summary>(`summary?a=${a}`);
    const columns = askBytes(`columns?a=${a}`);
    // A file that cannot be opened refuses both; the first says why.
    columns.catch(() => undefined);
    const archive = new Archive(a, await summary, new Columns<Head>(await columns));
    archive.findings = (await ask<{ findings: Finding[] }>(`findings?a=${a}`)).findings;
    return archive;
  }

  /** All names, decoded at once when the first is asked for. */
  get names(): string[] {
    if (!this.decoded) {
      const text = DECODER.decode(this.nameBytes);
      this.decoded = text.length === this.nameBytes.length ? this.cut(text) : this.decodeEach();
    }
    return this.decoded;
  }

  /** The names in small letters; those that are so already take no room. */
  get lowered(): string[] {
    this.lower ??= this.names.map((name) => name.toLowerCase());
    return this.lower;
  }

  private cut(text: string): string[] {
    const names = new Array<string>(this.count);
    let from = 0;
    for (let n = 0; n < this.count; n += 1) {
      names[n] = text.slice(from, this.nameEnd[n]);
      from = this.nameEnd[n];
    }
    return names;
  }

  private decodeEach(): string[] {
    const names = new Array<string>(this.count);
    for (let n = 0; n < this.count; n += 1) {
      names[n] = DECODER.decode(this.nameBytes.subarray(n ? this.nameEnd[n - 1] : 0, this.nameEnd[n]));
    }
    return names;
  }

  shape(t: number): Float64Array {
    return this.dims.subarray(t ? this.dimsEnd[t - 1] : 0, this.dimsEnd[t]);
  }

  place(name: string): number | undefined {
    if (!this.places) this.places = new Map(this.names.map((known, t) => [known, t]));
    return this.places.get(name);
  }

  type(t: number): string {
    return this.dtypes[this.dtype[t]];
  }

  isDefect(t: number): boolean {
    return (this.flags[t] & 1) !== 0;
  }

  isNumbers(t: number): boolean {
    return (this.flags[t] & 2) === 0;
  }
}
