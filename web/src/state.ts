// What is shown, as it stands in the address: Back goes back, and links lead to the same place.

import type { Archive } from "./table.js";
import type { Failure } from "./ask.js";
import type { Map as ColourMap } from "./colours.js";

export const TABS = ["overview", "tensors", "bytes", "metadata", "compare", "checks"] as const;
export type Tab = (typeof TABS)[number];
export type CellValue = "auto" | "extreme" | "mean" | "min" | "max";
export type PaneView = "heat" | "values" | "histogram" | "bytes" | "code";

export interface Listed {
  a: number;
  name: string;
  opened?: boolean;
}

export interface Hello {
  version: string;
  mode: "served" | "dropped";
  archives: Listed[];
  /** The two that were asked for together. */
  pair?: [number, number];
  formats: { id: string; name: string; extensions: string[]; is_read: boolean }[];
  limits: { cells: number; values: number; stored: number };
}

/** What a link can say. */
export interface Link {
  tab: Tab;
  /** The archive, and the tensor in it by its name. */
  a: number;
  t: string;
  view: PaneView;
  cell: CellValue;
  slice: string;
  axes: string;
  /** Elements of a line of a vector; 0 is what is usual. */
  fold: number;
  at: string;
  domain: string;
  map: ColourMap | "";
  filter: string;
  b: number;
}

const USUAL: Link = {
  tab: "overview", a: 0, t: "", view: "heat", cell: "auto", slice: "", axes: "", fold: 0, at: "", domain: "", map: "", filter: "", b: -1,
};

/** What a link says of a part of a tensor, where it says nothing. */
export const WHOLE = { slice: "", axes: "", fold: 0, at: "", domain: "" };

export const state = {
  hello: null as Hello | null,
  archive: null as Archive | null,
  failure: null as Failure | null,
  link: { ...USUAL },
  archives: new Map<number, Archive>(),
};

export function readLink(): Link {
  const link: Record<string, unknown> = { ...USUAL };
  for (const part of location.hash.replace(/^#/, "").split("&")) {
    const [key, value = ""] = part.split("=", 2);
    if (!(key in USUAL)) continue;
    let text = value;
    try {
      text = decodeURIComponent(value);
    } catch {
      // Somebody cut the link: what is there is taken as it is.
    }
    link[key] = typeof (USUAL as unknown as Record<string, unknown>)[key] === "number" ? Number(text) || 0 : text;
  }
  const read = link as unknown as Link;
  if (read.t && !location.hash.includes("tab=")) read.tab = "tensors";
  if (!TABS.includes(read.tab)) read.tab = "overview";
  return read;
}

export function writeLink(link: Link): string {
  const parts: string[] = [];
  for (const [key, value] of Object.entries(link)) {
    if (value === (USUAL as unknown as Record<string, unknown>)[key]) continue;
    parts.push(`${key}=${encodeURIComponent(String(value)).replace(/%3A/g, ":").replace(/%2C/g, ",")}`);
  }
  return `#${parts.join("&")}`;
}

let follow: () => void = () => undefined;

export function onLink(act: () => void): void {
  follow = act;
  window.addEventListener("hashchange", () => {
    state.link = readLink();
    act();
  });
}

/** Goes somewhere; `quiet` changes the address without a step back and without drawing. */
export function go(change: Partial<Link>, quiet = false): void {
  state.link = { ...state.link, ...change };
  const hash = writeLink(state.link);
  if (quiet) history.replaceState(null, "", hash);
  else {
    history.pushState(null, "", hash);
    follow();
  }
}

export function showTensor(a: number, name: string): void {
  go({ tab: "tensors", a, t: name, ...WHOLE });
}
