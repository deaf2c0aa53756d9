// Is it sound? What was noticed, what a look at every byte finds, and numbers that should not be there.

import { asJson, work } from "./ask.js";
import { button, fill, h, note } from "./dom.js";
import { grouped, middle, plural, short, size } from "./format.js";
import { findings } from "./overview.js";
import { showTensor } from "./state.js";
import type { Archive, Finding, Stats } from "./table.js";

interface Verdict {
  sound: boolean;
  findings: Finding[];
  checked: string[];
}

const verdicts = new WeakMap<Archive, Verdict>();

export function checks(archive: Archive, signal: AbortSignal): HTMLElement {
  const page = h("div", { class: "page checks" });
  const verify = h("section");
  const numbers = h("section");
  page.append(verify, numbers);
  drawVerify(archive, verify, signal);
  drawNumbers(archive, numbers, signal);
  return page;
}

/** A job with a bar and a way to stop it. */
async function job<R>(place: HTMLElement, what: string, begin: string, leaving: AbortSignal): Promise<R | null> {
  const stop = new AbortController();
  leaving.addEventListener("abort", () => {
    if (!stop.signal.aborted && bar.isConnected) note(`${what} was stopped`);
    stop.abort();
  }, { once: true });
  const bar = h("progress", { max: 1, value: 0, "aria-label": what });
  const told = h("span", { class: "num" });
  fill(place, h("p", null, `${what} `, bar, " ", told, " ", button("stop", () => stop.abort())));
  const step = await work(begin, (buffer) => asJson<R>(buffer), (found) => {
    bar.value = found.of ? found.done / found.of : 1;
    told.textContent = `${size(found.done)} of ${size(found.of)}`;
  }, stop.signal);
  // It is over, and nothing is stopped any more.
  bar.remove();
  return step?.result ?? null;
}

function drawVerify(archive: Archive, section: HTMLElement, signal: AbortSignal): void {
  const place = h("div");
  const known = verdicts.get(archive);
  const begin = async () => {
    try {
      const verdict = await job<Verdict>(place, "verifying", `verify?a=${archive.a}`, signal);
      if (verdict) verdicts.set(archive, verdict);
    } catch (error) {
      note((error as Error).message);
    }
    drawVerify(archive, section, signal);
  };
  fill(section, h("h2", null, "Soundness ", button(known ? "verify again" : `verify all, reads ${size(archive.summary.bytes)}`, () => void begin())), place);
  if (!known) {
    section.append(findings(archive, archive.findings, "Noticed while opening"));
    return;
  }
  fill(place, h("p", { class: `verdict ${known.sound ? "good" : "bad"}` }, known.sound ? "● sound" : "■ not sound", h("span", { class: "dim" }, ` ${known.checked.join(" · ")}`)));
  const order = { error: 0, warning: 1, note: 2 };
  const sorted = [...known.findings].sort((a, b) => order[a.severity] - order[b.severity]);
  if (sorted.length) section.append(findings(archive, sorted, "Findings"));
  else section.append(h("p", { class: "dim" }, "Every byte was read, and nothing is wrong with it."));
}

function drawNumbers(archive: Archive, section: HTMLElement, signal: AbortSignal): void {
  const place = h("div");
  const begin = async () => {
    try {
      const stats = await job<Stats>(place, "reading the numbers", `stats?a=${archive.a}`, signal);
      if (stats) archive.stats = new Map(stats.tensors.map((figures) => [figures.name, figures]));
    } catch (error) {
      note((error as Error).message);
    }
    drawNumbers(archive, section, signal);
  };
  fill(section, h("h2", null, "NaN, infinities, zeros ", button(archive.stats ? "read again" : `read all numbers, ${size(archive.summary.stored)}`, () => void begin())), place);
  if (!archive.stats) {
    fill(place, h("p", { class: "dim" }, "Not looked for yet. Afterwards the filter knows “nan”, “inf” and “zero”, and Overview shows the root mean square of layers."));
    return;
  }
  const all = [...archive.stats.values()];
  const odd = all.filter((found) => found.error || found.nan || found.positive_infinities || found.negative_infinities || (found.numbers > 0 && found.zeros === found.numbers));
  fill(place, h("p", null, odd.length ? `${plural(odd.length, "tensor")} of ${grouped(all.length)} to look at` : `● ${plural(all.length, "tensor")}: no NaN, no infinity, none that is all zeros`));
  if (!odd.length) return;
  const rows = odd.slice(0, 500).map((found) => h("tr", null,
    h("td", { class: "mono" }, h("a", { href: "#", onclick: (event: Event) => {
      event.preventDefault();
      showTensor(archive.a, found.name);
    } }, middle(found.name, 60))),
    h("td", { class: "num" }, found.error ? "–" : grouped(found.nan)), h("td", { class: "num" }, found.error ? "–" : grouped(found.positive_infinities + found.negative_infinities)),
    h("td", { class: "num" }, found.error ? "–" : found.zeros === found.numbers ? "all" : grouped(found.zeros)), h("td", { class: found.error ? "" : "num" }, found.error ?? `${short(found.min)} … ${short(found.max)}`)));
  place.append(h("table", { class: "keys" }, h("thead", null, h("tr", null, ...["tensor", "NaN", "Inf", "zeros", "finite numbers"].map((head) => h("th", null, head)))), h("tbody", null, ...rows)));
  if (odd.length > 500) place.append(h("p", { class: "dim" }, `and ${odd.length - 500} more; the filter “nan” lists them on Tensors`));
}
