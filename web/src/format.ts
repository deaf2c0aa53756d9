// Numbers, sizes and names as people read them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function size(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  if (unit === 0) return `${value} B`;
  return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${UNITS[unit]}`;
}

/** Digits in groups of three, with a thin space that no locale reads as a point. */
export function grouped(value: number | string): string {
  const text = typeof value === "number" ? String(value) : value;
  if (!/^-?\d+$/.test(text)) return text;
  return text.replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

export function big(value: number): string {
  for (const [from, word] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e4, "K"]] as const) {
    if (value >= from) {
      const unit = word === "K" ? 1e3 : from;
      return `${(value / unit).toPrecision(4).replace(/\.?0+$/, "")} ${word}`;
    }
  }
  return String(value);
}

/** A number of a picture: few digits, since the exact ones are among the values. */
export function short(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text =
    size >= 1e6 || size < 1e-4 ? value.toExponential(3) : String(Number(value.toPrecision(5)));
  return text.replace("e+", "e").replace("-", "−").replace("e-", "e−");
}

export function plural(count: number, word: string, many = `${word}s`): string {
  return `${grouped(count)} ${count === 1 ? word : many}`;
}

const ODD = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** A name of a file with what cannot be seen, or turns text around, written out. */
export function shown(name: string, most = 2000): string {
  const cut = name.length > most ? `${name.slice(0, most / 2)}…${name.slice(-most / 2)}` : name;
  return cut.replace(ODD, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);
}

/** Cut in the middle: the end of a name says what it is. */
export function middle(name: string, most: number): string {
  const text = shown(name);
  if (text.length <= most) return text;
  const tail = Math.ceil(most * 0.65);
  return `${text.slice(0, most - tail - 1)}…${text.slice(-tail)}`;
}

/** Cut in front, between parts of the name where that is possible: tensors that differ in the number of their layer still do. */
export function ending(name: string, most: number): string {
  const text = shown(name);
  if (text.length <= most) return text;
  const tail = text.slice(1 - most);
  const point = tail.indexOf(".");
  return `…${point >= 0 && point < tail.length / 2 ? tail.slice(point + 1) : tail}`;
}

export function shape(dims: ArrayLike<number>): string {
  return `[${Array.from(dims).join(", ")}]`;
}
