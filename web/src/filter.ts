// Filters: `mlp & size>1MiB & dtype:bf16 & nan`.

import type { Archive } from "./table.js";

export type Test = (t: number) => boolean;

const SIZES: Record<string, number> = { "": 1, b: 1, k: 1024, kib: 1024, kb: 1e3, m: 1 << 20, mib: 1 << 20, mb: 1e6, g: 2 ** 30, gib: 2 ** 30, gb: 1e9 };

/** What a filter keeps, or why it cannot be read. */
export function filter(archive: Archive, text: string): Test | string {
  const tests: Test[] = [];
  for (const word of text.split("&").map((part) => part.trim()).filter(Boolean)) {
    const made = one(archive, word);
    if (typeof made === "string") return made;
    tests.push(made);
  }
  return (t) => tests.every((test) => test(t));
}

function one(archive: Archive, word: string): Test | string {
  if (word.startsWith("!")) {
    const inner = one(archive, word.slice(1).trim());
    return typeof inner === "string" ? inner : (t) => !inner(t);
  }
  const compared = /^(size|elements|rank)\s*(>=|<=|>|<|=)\s*([\d.]+)\s*([a-z]*)$/i.exec(word);
  if (compared) {
    const [, what, sign, digits, unit] = compared;
    const factor = SIZES[unit.toLowerCase()];
    if (factor === undefined) return `${unit} is no unit; KiB, MiB and GiB are`;
    const wanted = Number(digits) * factor;
    const of: (t: number) => number =
      what === "size" ? (t) => archive.stored[t] : what === "elements" ? (t) => archive.elements[t] : (t) => archive.shape(t).length;
    return (t) => {
      const value = of(t);
      return sign === ">" ? value > wanted : sign === "<" ? value < wanted : sign === ">=" ? value >= wanted : sign === "<=" ? value <= wanted : value === wanted;
    };
  }
  const named = /^(dtype|layout|shape):\s*(.+)$/i.exec(word);
  if (named) {
    const wanted = named[2].toLowerCase();
    if (named[1] === "dtype") return (t) => archive.type(t).toLowerCase() === wanted;
    if (named[1] === "layout") return (t) => archive.layouts[archive.layout[t]].toLowerCase() === wanted;
    const plain = wanted.replace(/[[\]\s]/g, "");
    return (t) => archive.shape(t).join(",") === plain;
  }
  if (/^(nan|inf|zero)$/i.test(word)) {
    const stats = archive.stats;
    if (!stats) return `“${word}” needs the numbers: look for them on Checks first`;
    return (t) => {
      const found = stats.get(archive.names[t]);
      if (!found || found.error) return false;
      if (word.toLowerCase() === "nan") return found.nan > 0;
      if (word.toLowerCase() === "inf") return found.positive_infinities + found.negative_infinities > 0;
      return found.zeros === found.numbers;
    };
  }
  if (/^(broken|defect)$/i.test(word)) return (t) => archive.isDefect(t);
  const names = archive.names;
  const pattern = word.toLowerCase();
  if (pattern.includes("*")) {
    const expression = new RegExp(`^${pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*")}$`, "i");
    return (t) => expression.test(names[t]);
  }
  const lowered = archive.lowered;
  return (t) => lowered[t].includes(pattern);
}
