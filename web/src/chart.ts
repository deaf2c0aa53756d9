// Histograms with a colour bar, and handles for the domain.

import { canvas, css, h } from "./dom.js";
import { type Map as ColourMap, place, table } from "./colours.js";
import { short } from "./format.js";

export interface Bars {
  edges: ArrayLike<number>;
  counts: ArrayLike<number>;
}

export function histogramOf(values: Float64Array, bins = 64): Bars {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!(high > low)) [low, high] = Number.isFinite(low) ? [low - 0.5, low + 0.5] : [0, 1];
  const counts = new Float64Array(bins);
  for (const value of values) {
    if (Number.isFinite(value)) counts[Math.min(bins - 1, Math.floor(((value - low) / (high - low)) * bins))] += 1;
  }
  return { edges: Float64Array.from({ length: bins + 1 }, (_, n) => low + ((high - low) * n) / bins), counts };
}

export interface ChartOptions {
  wide: number;
  high: number;
  log: boolean;
  domain: readonly [number, number];
  map: ColourMap;
  /** Called while somebody moves the ends of the colours. */
  moved?: (domain: [number, number]) => void;
}

export function histogram(bars: Bars, options: ChartOptions): HTMLElement {
  const { wide, high, log, domain, map } = options;
  const bins = bars.counts.length;
  const low = bars.edges[0];
  const top = bars.edges[bins];
  let most = 0;
  for (let n = 0; n < bins; n += 1) most = Math.max(most, bars.counts[n]);
  const label = `histogram of ${bins} bins from ${short(low)} to ${short(top)}, the fullest has ${most}`;
  const [element, context] = canvas(wide, high, label);
  const ratio = element.width / wide;
  const bar = Math.round(10 * ratio);
  const room = element.height - bar - Math.round(3 * ratio);
  const colours = table(map);
  const tall = (count: number) => (count <= 0 ? 0 : log ? Math.log1p(count) / Math.log1p(most) : count / most);
  context.fillStyle = css("accent");
  for (let n = 0; n < bins; n += 1) {
    // One beside the other: gaps of whole pixels would be stripes where bars are a few pixels wide.
    const x0 = Math.round((n * element.width) / bins);
    const x1 = Math.round(((n + 1) * element.width) / bins);
    const up = Math.max(bars.counts[n] > 0 ? ratio : 0, tall(bars.counts[n]) * room);
    context.fillRect(x0, room - up, Math.max(1, x1 - x0), up);
  }
  for (let x = 0; x < element.width; x += 1) {
    const value = low + ((top - low) * (x + 0.5)) / element.width;
    const n = place(value, domain) * 3;
    context.fillStyle = `rgb(${colours[n]},${colours[n + 1]},${colours[n + 2]})`;
    context.fillRect(x, element.height - bar, 1, bar);
  }
  const at = (value: number) => Math.max(0, Math.min(wide, ((value - low) / (top - low)) * wide));
  const holder = h("div", { class: "chart" }, element);
  holder.style.width = `${wide}px`;
  const names = ["lower end of the colours", "upper end of the colours"];
  domain.forEach((value, n) => {
    const handle = h("div", {
      class: "handle", role: "slider", tabIndex: 0, "aria-label": names[n], "aria-valuenow": value, "aria-valuemin": low, "aria-valuemax": top, title: names[n],
    });
    handle.style.left = `${at(value)}px`;
    handle.style.height = `${high}px`;
    const move = (next: number) => {
      const made: [number, number] = [domain[0], domain[1]];
      made[n] = next;
      if (made[0] < made[1]) options.moved?.(made);
    };
    handle.addEventListener("keydown", (event) => {
      const step = (top - low) / 50;
      if (event.key === "ArrowLeft") move(value - step);
      else if (event.key === "ArrowRight") move(value + step);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    handle.addEventListener("pointerdown", (event) => {
      handle.setPointerCapture(event.pointerId);
      const begin = event.clientX;
      const from = at(value);
      const drag = (moving: PointerEvent) => {
        handle.style.left = `${Math.max(0, Math.min(wide, from + moving.clientX - begin))}px`;
      };
      handle.addEventListener("pointermove", drag);
      handle.addEventListener("pointerup", (ended) => {
        handle.removeEventListener("pointermove", drag);
        move(low + ((from + ended.clientX - begin) / wide) * (top - low));
      }, { once: true });
    });
    holder.append(handle);
  });
  const ends = h("div", { class: "ends num" }, h("span", null, short(low)), h("span", null, short(top)));
  ends.style.width = `${wide}px`;
  return h("div", null, holder, ends);
}

/** The same for those who read. */
export function barsAsTable(bars: Bars): HTMLElement {
  const body = h("tbody");
  for (let n = 0; n < bars.counts.length; n += 1) {
    body.append(h("tr", null, h("td", null, short(bars.edges[n])), h("td", null, short(bars.edges[n + 1])), h("td", null, String(bars.counts[n]))));
  }
  return h("details", { class: "twin" }, h("summary", null, "as table"), h("table", null, h("thead", null, h("tr", null, h("th", null, "from"), h("th", null, "to"), h("th", null, "count"))), body));
}
