// Colours: maps for numbers, categories for types and kinds of bytes.

export type Map = "viridis" | "cividis" | "greys" | "rdbu" | "puor";
export const SEQUENTIAL: Map[] = ["viridis", "cividis", "greys"];
export const DIVERGING: Map[] = ["rdbu", "puor"];

const STOPS: Record<Map, string> = {
  viridis: "440154 482878 3e4a89 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725",
  cividis: "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838",
  greys: "111111 333333 555555 777777 999999 bbbbbb d5d5d5 eeeeee",
  rdbu: "053061 2166ac 4393c3 92c5de d1e5f0 f7f7f7 fddbc7 f4a582 d6604d b2182b 67001f",
  puor: "2d004b 542788 8073ac b2abd2 d8daeb f7f7f7 fee0b6 fdb863 e08214 b35806 7f3b08",
};

const tables = new globalThis.Map<Map, Uint8Array>();

/** 256 colours, red, green and blue of each. */
export function table(map: Map): Uint8Array {
  let made = tables.get(map);
  if (!made) {
    const digits = STOPS[map].replace(/\s/g, "");
    const stops = digits.length / 6;
    const channel = (stop: number, of: number) => parseInt(digits.slice(stop * 6 + of * 2, stop * 6 + of * 2 + 2), 16);
    made = new Uint8Array(768);
    for (let n = 0; n < 256; n += 1) {
      const place = (n / 255) * (stops - 1);
      const stop = Math.min(stops - 2, Math.floor(place));
      for (let of = 0; of < 3; of += 1) {
        const from = channel(stop, of);
        made[n * 3 + of] = Math.round(from + (channel(stop + 1, of) - from) * (place - stop));
      }
    }
    tables.set(map, made);
  }
  return made;
}

/** Which of the 256 colours a number has. */
export function place(value: number, [low, high]: readonly [number, number]): number {
  if (!(high > low)) return 128;
  return Math.max(0, Math.min(255, Math.floor(((value - low) / (high - low)) * 256)));
}

export const NAN: [number, number, number] = [255, 0, 255];
export const POSITIVE: [number, number, number] = [255, 150, 255];
export const NEGATIVE: [number, number, number] = [140, 0, 140];

/** Of Okabe and Ito, which most people can tell apart. */
const CATEGORIES = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#7a6b00", "#6b6b6b"];

export function category(n: number): string {
  return n < 0 ? "#8c8c8c" : CATEGORIES[n % CATEGORIES.length];
}

/** How much a title darkens what it stands on. */
export const SHADE = 0.22;

/** Text that can be read on a category, or on one that a title darkens: black or white, whichever differs more. */
export function on(n: number, shade = 0): string {
  const digits = category(n).slice(1);
  const [r, g, b] = [0, 2, 4].map((at) => {
    const part = (parseInt(digits.slice(at, at + 2), 16) / 255) * (1 - shade);
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  // The contrasts of WCAG; the dark one has a luminance of 0.009.
  return 1.05 / (light + 0.05) >= (light + 0.05) / 0.059 ? "#ffffff" : "#14181c";
}

/** Kinds of bytes: header, data, padding, unclaimed, overlap, behind the end; and data of every other tensor. */
export const KINDS = ["#5b3a8e", "#0072b2", "#b9c1c9", "#e69f00", "#d55e00", "#6b6b6b", "#4d9fd3"];
