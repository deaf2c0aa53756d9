// One tensor: what it is, and five ways to look at it.

import { Refusal, TooMuch, ask, askBytes, asJson, work } from "./ask.js";
import { type Bars, barsAsTable, histogram, histogramOf } from "./chart.js";
import { DIVERGING, SEQUENTIAL, type Map as ColourMap } from "./colours.js";
import { button, canvas, check, copy, css, fill, h, note, save, say, select } from "./dom.js";
import { grouped, plural, shape, short, shown, size } from "./format.js";
import { hex } from "./hex.js";
import { type Picture, domainOf, draw, fetchPicture, usualMap } from "./picture.js";
import { Plane } from "./plane.js";
import { type CellValue, type PaneView, go, state } from "./state.js";
import type { Archive, Figures, Stats } from "./table.js";
import { empty } from "./tensors.js";
import { grid } from "./grid.js";

export interface Tensor {
  t: number;
  name: string;
  dtype: string;
  numbers: { dtype: string; lanes: number; bits: number; is_float: boolean } | null;
  shape: number[];
  layout: string;
  elements: number | null;
  dense: number | null;
  parts: { role: string; dtype: string; encoding: string; endian: string; source: number | null; file: string | null; from: number | null; bytes: number; checksum: string | null }[];
  metadata: Record<string, unknown>;
  why?: string;
  rule?: string;
}

const VIEWS: [PaneView, string, string][] = [["heat", "Heat map", "g"], ["values", "Values", "v"], ["histogram", "Histogram", "h"], ["bytes", "Bytes", "b"], ["code", "Copy code", "c"]];
/** Figures of more bytes are computed when somebody asks. */
const READ_WHOLE = 32 << 20;

const figuresKept = new WeakMap<Archive, Map<number, Figures>>();

export interface Pane {
  element: HTMLElement;
  keys: (key: string, event: KeyboardEvent) => boolean;
  stop: () => void;
}

export function tensorPane(archive: Archive, t: number): Pane {
  const name = archive.names[t];
  const stopped = new AbortController();
  let drawing = new AbortController();
  let tensor: Tensor | null = null;
  let plane = new Plane(Array.from(archive.shape(t)));
  let picture: Picture | null = null;
  let figures: Figures | null = figuresKept.get(archive)?.get(t) ?? null;
  let component = "";
  let log = true;
  /** Bytes that may be read for a picture; more than is usual once somebody agreed. */
  let most: number | undefined;
  let cursor: [number, number] | null = null;
  let all = false;
  let playing = 0;

  const title = h("h1", { class: "mono", title: shown(name), tabIndex: -1 }, shown(name, 200));
  const facts = h("p", { class: "dim facts" }, `${archive.type(t)} · ${shape(archive.shape(t))} · ${size(archive.stored[t])}`);
  const views = h("div", { class: "views", role: "tablist", "aria-label": "views of the tensor", onkeydown: (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const at = VIEWS.findIndex(([view]) => view === state.link.view);
    change(VIEWS[(at + step + VIEWS.length) % VIEWS.length][0]);
    views.querySelector<HTMLElement>("[aria-selected='true']")?.focus();
    event.preventDefault();
    event.stopPropagation();
  } });
  const body = h("div", { class: "body", id: "view", role: "tabpanel" });
  const element = h("article", null, title, facts, views, body);

  const drawViews = () => {
    const isFocused = views.contains(document.activeElement);
    fill(views, ...VIEWS.map(([view, label, key]) => {
      const isChosen = state.link.view === view;
      return button(label, () => change(view), { role: "tab", title: `key ${key}`, tabIndex: isChosen ? 0 : -1, "aria-controls": "view", "aria-selected": String(isChosen), class: isChosen ? "on" : "" });
    }));
    body.setAttribute("aria-label", VIEWS.find(([view]) => view === state.link.view)?.[1] ?? "");
    if (isFocused) views.querySelector<HTMLElement>("[aria-selected='true']")?.focus();
  };
  const change = (view: PaneView) => {
    go({ view }, true);
    show();
  };

  const show = () => {
    drawing.abort();
    drawing = new AbortController();
    clearInterval(playing);
    drawViews();
    if (!tensor) {
      fill(body, h("p", { class: "dim" }, "opening …"));
      return;
    }
    const { view } = state.link;
    if (view === "bytes") return fill(body, hex(archive, tensor));
    if (view === "code") return code();
    if (tensor.why) return fill(body, reason(tensor.why, tensor.rule));
    if (!tensor.numbers) return fill(body, reason(`${tensor.dtype} has no numbers to draw`, undefined));
    if (plane.rowCount === 0 || plane.columnCount === 0) return fill(body, empty("This tensor has no elements.", `Its shape is ${shape(tensor.shape)}.`));
    if (view === "values") return fill(body, controls(false), grid(archive, t, plane, tensor.numbers.dtype, Math.max(280, body.clientWidth), drawing.signal));
    if (view === "histogram") return histogramView();
    heat();
  };

  const reason = (why: string, rule: string | undefined) =>
    h("div", { class: "reason" }, h("p", null, "■ ", why), rule ? h("p", { class: "mono dim" }, rule) : null, h("p", { class: "dim" }, "Bytes shows what is stored."));

  /** Dimensions, indices along the others, and what cells show. */
  const controls = (isHeat: boolean) => {
    const axes: [string, string][] = tensor!.shape.map((dim, axis) => [String(axis), `axis ${axis} (${dim})`]);
    const bar = h("div", { class: "controls" });
    if (!plane.fold && tensor!.shape.length >= 2) {
      bar.append(h("label", null, "rows ", select("dimension of the rows", axes, String(plane.rows), (value) => {
        plane.axis("rows", Number(value));
        show();
      })), h("label", null, "columns ", select("dimension of the columns", axes, String(plane.columns), (value) => {
        plane.axis("columns", Number(value));
        show();
      })), button("swap", swap, { title: "key x" }));
    } else if (tensor!.shape.length === 1) {
      const width = h("input", { type: "number", min: 0, max: tensor!.shape[0], value: String(plane.fold), "aria-label": "elements of a line", onchange: () => {
        plane.fold = Math.max(0, Math.min(tensor!.shape[0], Math.floor(Number(width.value)) || 0));
        plane.rect = plane.whole();
        plane.remember();
        show();
      } });
      bar.append(h("label", null, "elements of a line ", width));
    }
    bar.append(h("span", { class: "mono slice" }, plane.slice() ? `[${plane.slice()}]` : "[...]"));
    if (isHeat) {
      bar.append(h("label", null, "cell ", select("what a cell shows", [["auto", "automatic"], ["extreme", "extreme"], ["mean", "mean"], ["min", "min"], ["max", "max"]], state.link.cell, (value) => {
        go({ cell: value as CellValue, domain: "" }, true);
        show();
      })), h("label", null, "colours ", select("colours", [["", "auto"], ...SEQUENTIAL.map((map): [string, string] => [map, map]), ...DIVERGING.map((map): [string, string] => [map, map])], state.link.map, (value) => {
        go({ map: value as ColourMap | "" }, true);
        show();
      })));
      if (tensor!.numbers!.lanes > 1) {
        const parts: [string, string][] = [["modulus", "modulus"]];
        if (tensor!.numbers!.lanes === 2) parts.push(["phase", "phase"], ["real", "real"], ["imaginary", "imaginary"]);
        else for (let n = 0; n < tensor!.numbers!.lanes; n += 1) parts.push([String(n), `component ${n}`]);
        bar.append(h("label", null, "number ", select("which number of an element", parts, component || "modulus", (value) => {
          component = value;
          show();
        })));
      }
    }
    const sliders = plane.others.map((axis) => {
      const last = tensor!.shape[axis] - 1;
      const range = h("input", { type: "range", min: 0, max: last, value: String(plane.at[axis]), "aria-label": `index along axis ${axis}`, oninput: () => {
        plane.at[axis] = Number(range.value);
        text.textContent = `axis ${axis}: ${plane.at[axis]} of ${last + 1}`;
      }, onchange: () => {
        plane.remember();
        show();
      } });
      const text = h("span", { class: "num" }, `axis ${axis}: ${plane.at[axis]} of ${last + 1}`);
      const play = button("play", () => {
        clearInterval(playing);
        playing = window.setInterval(() => stepAxis(axis, 1), 600);
      }, { disabled: last === 0 });
      return h("div", { class: "slider" }, text, range, play);
    });
    return h("div", null, bar, ...sliders);
  };

  const stepAxis = (axis: number, by: number) => {
    const count = tensor!.shape[axis];
    plane.at[axis] = (plane.at[axis] + by + count) % count;
    plane.remember();
    const goesOn = playing;
    playing = 0;
    show();
    playing = goesOn;
  };
  const swap = () => {
    plane.swap();
    show();
  };

  /** The size of the picture on the screen: squares where there is room for more than a pixel an element. */
  const frame = (): [number, number] => {
    const { r0, r1, c0, c1 } = plane.rect;
    const [rows, columns] = [r1 - r0, c1 - c0];
    const most = Math.max(220, Math.min(640, (body.clientWidth || 760) - 300));
    const high = Math.max(200, Math.min(560, window.innerHeight - 330));
    const square = Math.floor(Math.min(most / columns, high / rows, 48));
    if (square >= 1) return [columns * square, rows * square];
    // Long ones are pressed together: a picture that is a line shows nothing.
    const shown = Math.min(1.1, Math.max(0.4, rows / columns));
    let [w, hh] = [most, Math.round(most * shown)];
    if (hh > high) [w, hh] = [Math.round(high / shown), high];
    return [Math.min(w, most, Math.max(columns * 48, 1)), Math.min(hh, high, Math.max(rows * 48, 1))];
  };

  const heat = () => {
    const [wide, high] = frame();
    const [screen, context] = canvas(wide, high, `heat map of ${shown(name)}`);
    context.fillStyle = css("quiet");
    context.fillRect(0, 0, screen.width, screen.height);
    screen.tabIndex = 0;
    screen.classList.add("heat");
    screen.setAttribute("role", "img");
    const note1 = h("p", { class: "dim", id: "read" }, "reading …");
    const note2 = h("p", { class: "num", id: "cell" }, "\u00a0");
    const holder = h("div", { class: "screen" }, screen);
    const beside = h("div", { class: "beside" });
    const top = controls(true);
    fill(body, top, h("div", { class: "heat-row" }, h("div", { class: "shown" }, holder, note1, note2), beside), zoomTools());
    const cells = (pixels: number) => Math.min(pixels, state.hello!.limits.cells);
    const question = plane.question(archive.a, t, cells(screen.height), cells(screen.width), all, component);
    const domain = (): readonly [number, number] => {
      const given = state.link.domain.split(",").map(Number);
      return given.length === 2 && given[0] < given[1] ? [given[0], given[1]] : domainOf(picture!.values(state.link.cell));
    };
    const redraw = () => {
      if (!picture) return;
      const shownDomain = domain();
      const map = state.link.map || usualMap(shownDomain);
      draw(screen, picture, { cell: state.link.cell, domain: shownDomain, map }, colour(css("quiet")));
      screen.dataset["ready"] = picture.finished ? "1" : "";
      cross(screen, picture, cursor);
      screen.setAttribute("aria-label", described(picture));
      const bad = picture.head.nans + picture.head.positive_infinities + picture.head.negative_infinities;
      fill(note1, readNote(picture), bad ? h("strong", { class: "bad" }, `· ${badText(picture.head.nans, bad - picture.head.nans)} `) : null, picture.head.exact ? null : button("read all", () => {
        all = true;
        show();
      }));
      fill(beside, ...besideHeat(picture, shownDomain, map, redraw));
    };
    let begun = 0;
    const auto = top.querySelector("option[value='auto']");
    void fetchPicture(question, (found) => {
      picture = found;
      if (auto) auto.textContent = `automatic: ${found.valueOf("auto")}`;
      // The last one is drawn in any case; others when there is time.
      cancelAnimationFrame(begun);
      begun = requestAnimationFrame(redraw);
    }, drawing.signal, all ? Infinity : most).then((found) => {
      if (!found) return;
      say(described(found));
      const bytes = tensor!.dense ?? Infinity;
      if (!figures && (bytes <= READ_WHOLE || all)) void compute(redraw);
    }, (error: Error) => {
      if (drawing.signal.aborted) return;
      if (error instanceof TooMuch) {
        const read = button(`read ${size(error.bytes)}`, () => {
          most = Infinity;
          show();
        }, { class: "on" });
        fill(body, top, h("div", { class: "reason" }, h("p", null, `A picture of this tensor takes ${size(error.bytes)}: no smaller part of what is stored can be undone by itself.`), h("p", null, read)));
      } else fill(body, top, reason(error.message, error instanceof Refusal ? error.failure.rule ?? undefined : undefined));
    });
    const locate = (event: MouseEvent): [number, number] | null => {
      if (!picture) return null;
      const box = screen.getBoundingClientRect();
      const at: [number, number] = [Math.floor(((event.clientY - box.top) / box.height) * picture.high), Math.floor(((event.clientX - box.left) / box.width) * picture.wide)];
      return at[0] >= 0 && at[1] >= 0 && at[0] < picture.high && at[1] < picture.wide ? at : null;
    };
    const tell = () => {
      note2.textContent = picture && cursor ? cellText(picture, cursor) : "\u00a0";
    };
    screen.addEventListener("mousemove", (event) => {
      cursor = locate(event);
      tell();
    });
    screen.addEventListener("mouseleave", () => {
      cursor = null;
      tell();
    });
    screen.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && !event.altKey && event.deltaMode === 0 && Math.abs(event.deltaY) < 4) return;
      event.preventDefault();
      const at = locate(event);
      const { r0, r1, c0, c1 } = plane.rect;
      const row = at && picture ? r0 + ((at[0] + 0.5) * (r1 - r0)) / picture.high : undefined;
      const column = at && picture ? c0 + ((at[1] + 0.5) * (c1 - c0)) / picture.wide : undefined;
      plane.zoom(event.deltaY > 0 ? 1.5 : 1 / 1.5, row, column);
      show();
    }, { passive: false });
    screen.addEventListener("pointerdown", (event) => {
      screen.focus();
      if (plane.isWhole) return;
      const [x, y] = [event.clientX, event.clientY];
      screen.setPointerCapture(event.pointerId);
      screen.addEventListener("pointerup", (ended) => {
        const [dx, dy] = [ended.clientX - x, ended.clientY - y];
        if (Math.abs(dx) + Math.abs(dy) < 4) return;
        plane.pan(-dy / high, -dx / wide);
        show();
      }, { once: true });
    });
    screen.addEventListener("dblclick", (event) => {
      const at = locate(event);
      if (!at || !picture) return;
      const { r, c } = picture.range(at[0], at[1]);
      plane.zoom(0.25, (r[0] + r[1]) / 2, (c[0] + c[1]) / 2);
      show();
    });
    screen.addEventListener("keydown", (event) => {
      if (!picture) return;
      const moves: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      const move = moves[event.key];
      if (!move) return;
      event.preventDefault();
      event.stopPropagation();
      if (event.shiftKey) {
        plane.pan(move[0] * 0.5, move[1] * 0.5);
        show();
        document.querySelector<HTMLElement>("canvas.heat")?.focus();
        return;
      }
      const [row, column] = cursor ?? [0, -1];
      cursor = [Math.max(0, Math.min(picture.high - 1, row + move[0])), Math.max(0, Math.min(picture.wide - 1, column + move[1]))];
      redraw();
      tell();
      say(note2.textContent ?? "");
    });
  };

  const zoomTools = () => h("div", { class: "tools" },
    button("+", () => zoom(0.5), { title: "zoom in, key +", "aria-label": "zoom in" }),
    button("−", () => zoom(2), { title: "zoom out, key -", "aria-label": "zoom out" }),
    button("whole", () => zoom(0), { title: "key 0" }),
    button("next NaN", () => nextBad(1), { title: "keys n and N" }),
    button("save PNG", savePng),
    button("save .npy", () => void saveNpy()),
    button("copy name", () => void copy(name), { title: "key y" }));

  const zoom = (factor: number) => {
    if (factor === 0) {
      plane.rect = plane.whole();
      plane.remember();
    } else plane.zoom(factor);
    show();
  };

  const nextBad = (way: number) => {
    if (!picture?.hasBad) return note(picture?.head.exact ? "there is no NaN and no infinity in this part" : "none seen; not all of it was read");
    const count = picture.high * picture.wide;
    const from = cursor ? cursor[0] * picture.wide + cursor[1] : way > 0 ? -1 : count;
    for (let by = 1; by <= count; by += 1) {
      const n = (((from + way * by) % count) + count) % count;
      if (!picture.notFinite(n)) continue;
      cursor = [Math.floor(n / picture.wide), n % picture.wide];
      const screen = body.querySelector<HTMLCanvasElement>("canvas.heat");
      if (screen) {
        const given = state.link.domain.split(",").map(Number);
        const domain: readonly [number, number] = given.length === 2 && given[0] < given[1] ? [given[0], given[1]] : domainOf(picture.values(state.link.cell));
        draw(screen, picture, { cell: state.link.cell, domain, map: state.link.map || usualMap(domain) }, colour(css("quiet")));
        cross(screen, picture, cursor);
      }
      const text = cellText(picture, cursor);
      const place = document.getElementById("cell");
      if (place) place.textContent = text;
      return say(text);
    }
  };

  const besideHeat = (found: Picture, domain: readonly [number, number], map: ColourMap, redraw: () => void) => {
    const isOwn = figures?.histogram !== undefined;
    const bars: Bars = figures?.histogram ?? histogramOf(found.values(state.link.cell));
    const wide = Math.max(200, Math.min(270, body.clientWidth - 100));
    return [
      h("h2", null, "Histogram ", h("span", { class: "dim" }, isOwn ? "all numbers" : `cells, ${found.valueOf(state.link.cell)}`), check("log y", log, (value) => {
        log = value;
        redraw();
      })),
      histogram(bars, { wide, high: 110, log, domain, map, moved: (moved) => {
        go({ domain: moved.map((value) => Number(value.toPrecision(6))).join(",") }, true);
        redraw();
      } }),
      h("p", { class: "dim" }, `colours ${short(domain[0])} … ${short(domain[1])}, ${state.link.domain ? "set by hand " : "1–99 % "}`, state.link.domain ? button("reset", () => {
        go({ domain: "" }, true);
        redraw();
      }) : null),
      figureTable(found),
    ];
  };

  const figureTable = (found: Picture) => {
    const { head } = found;
    const whole = figures;
    const row = (what: string, value: string, bad = false) => h("tr", null, h("th", { scope: "row" }, what), h("td", { class: bad ? "num bad" : "num" }, value));
    const seen = (count: number) => (count ? grouped(count) : head.exact ? "0" : "none seen");
    const body = h("tbody");
    if (whole) {
      body.append(row("min", short(whole.min)), row("max", short(whole.max)), row("mean", short(whole.mean)), row("std", short(whole.std)), row("zeros", grouped(whole.zeros)), row("NaN", grouped(whole.nan), whole.nan > 0), row("+Inf / −Inf", `${grouped(whole.positive_infinities)} / ${grouped(whole.negative_infinities)}`, whole.positive_infinities + whole.negative_infinities > 0), row("subnormal", grouped(whole.subnormals)));
    } else {
      body.append(row("min", short(head.min)), row("max", short(head.max)), row("mean", short(head.mean)), row("zeros", seen(head.zeros)), row("NaN", seen(head.nans), head.nans > 0), row("+Inf / −Inf", `${seen(head.positive_infinities)} / ${seen(head.negative_infinities)}`, head.positive_infinities + head.negative_infinities > 0));
    }
    const about = whole ? "of the whole tensor" : head.exact ? "of what is shown" : `of ${sampled(found)}`;
    return h("table", { class: "figures-table" }, h("caption", { class: "dim" }, about), body);
  };

  const compute = async (after: () => void) => {
    try {
      const step = await work(`stats?a=${archive.a}&t=${t}&bins=64`, (buffer) => asJson<Stats>(buffer), () => undefined, stopped.signal);
      const found = step?.result?.tensors[0];
      if (!found || found.error) return;
      figures = found;
      const kept = figuresKept.get(archive) ?? new Map<number, Figures>();
      figuresKept.set(archive, kept.set(t, found));
      after();
    } catch (error) {
      note((error as Error).message);
    }
  };

  const histogramView = () => {
    const place = h("div", { class: "wide-histogram" });
    const redraw = () => {
      if (!figures?.histogram) return;
      const given = state.link.domain.split(",").map(Number);
      const { edges } = figures.histogram;
      const ends: readonly [number, number] = given.length === 2 && given[0] < given[1] ? [given[0], given[1]] : [edges[0], edges[edges.length - 1]];
      fill(place, h("p", null, check("log y", log, (value) => {
        log = value;
        redraw();
      }), h("span", { class: "dim" }, ` ${plural(figures.finite, "finite number")} in ${figures.histogram.counts.length} bins; the handles are the ends of the colours`)),
      histogram(figures.histogram, { wide: Math.max(280, Math.min(860, body.clientWidth - 40)), high: 320, log, domain: ends, map: state.link.map || usualMap(ends), moved: (moved) => {
        go({ domain: moved.map((value) => Number(value.toPrecision(6))).join(",") }, true);
        redraw();
      } }), barsAsTable(figures.histogram));
    };
    fill(body, place);
    if (figures?.histogram) return redraw();
    if (figures) return fill(place, empty("No finite number to count.", `${plural(figures.nan, "NaN", "NaN")}, ${plural(figures.positive_infinities + figures.negative_infinities, "infinity", "infinities")}.`));
    const bytes = tensor!.dense ?? 0;
    const begin = () => {
      fill(place, h("p", { class: "dim" }, `reading ${size(bytes)} twice …`));
      void compute(() => (figures?.histogram ? redraw() : show()));
    };
    if (bytes <= READ_WHOLE) begin();
    else fill(place, h("p", null, `A histogram reads all ${size(bytes)} twice. `, button("read all", begin)));
  };

  const code = () => {
    const place = h("div", { class: "code" }, "…");
    fill(body, h("p", { class: "dim" }, plane.isWhole ? "The whole tensor." : `The part that is shown: [${plane.slice()}].`), place);
    const slice = plane.isWhole ? "" : plane.slice();
    void ask<{ snippets: { language: string; code: string }[] }>(`snippet?a=${archive.a}&t=${t}&slice=${encodeURIComponent(slice)}`).then(({ snippets }) =>
      fill(place, ...snippets.map((snippet) => h("section", { class: "snippet" }, h("header", null, h("span", null, snippet.language), button("copy", () => void copy(snippet.code))), h("pre", null, snippet.code)))),
    (error: Error) => fill(place, reason(error.message, undefined)));
  };

  const savePng = () => {
    body.querySelector<HTMLCanvasElement>("canvas.heat")?.toBlob((blob) => {
      if (blob) save(`${name.replace(/[^\w.-]/g, "_").slice(0, 100)}.png`, [blob], "image/png");
    });
  };
  const saveNpy = async () => {
    try {
      const slice = plane.isWhole ? "" : plane.slice();
      const bytes = await askBytes(`npy?a=${archive.a}&t=${t}&slice=${encodeURIComponent(slice)}`);
      save(`${name.replace(/[^\w.-]/g, "_").slice(0, 100)}.npy`, [bytes], "application/octet-stream");
    } catch (error) {
      note((error as Error).message);
    }
  };
  drawViews();
  void ask<Tensor>(`tensor?a=${archive.a}&t=${t}`).then((found) => {
    if (stopped.signal.aborted) return;
    tensor = found;
    plane = new Plane(found.shape.map(Number));
    const part = found.parts[0];
    const where = part?.from !== null && part?.from !== undefined ? ` · bytes ${grouped(part.from)} + ${grouped(part.bytes)}` : "";
    const sum = part?.checksum ? ` · checksum ${part.checksum}` : " · no checksum";
    const kind = found.numbers && found.numbers.dtype !== found.dtype ? ` · numbers are ${found.numbers.dtype}` : "";
    facts.textContent = `${found.dtype} · ${shape(found.shape)} · ${size(archive.stored[t])} · ${found.layout}${part && part.encoding !== "raw" ? ` · ${part.encoding}` : ""}${kind}${where}${sum}`;
    show();
  }, (error: Error) => fill(body, reason(error.message, undefined)));

  const keys = (key: string): boolean => {
    const view = VIEWS.find(([, , short]) => short === key);
    if (view) change(view[0]);
    else if (key === "+" || key === "=") zoom(0.5);
    else if (key === "-") zoom(2);
    else if (key === "0") zoom(0);
    else if ((key === "[" || key === "]") && plane.others.length && tensor) stepAxis(plane.others[plane.others.length - 1], key === "]" ? 1 : -1);
    else if (key === "x") swap();
    else if (key === "n") nextBad(1);
    else if (key === "N") nextBad(-1);
    else if (key === "y") void copy(name);
    else return false;
    return true;
  };
  return {
    element,
    keys,
    stop: () => {
      stopped.abort();
      drawing.abort();
      clearInterval(playing);
    },
  };
}

/** What is not finite, without what there is none of. */
function badText(nans: number, infinities: number): string {
  return [nans ? plural(nans, "NaN", "NaN") : "", infinities ? plural(infinities, "infinity", "infinities") : ""].filter(Boolean).join(", ");
}

function readNote(picture: Picture): string {
  const { head } = picture;
  if (head.exact) return `all ${plural(head.lines[1], head.by_columns ? "column" : "row")} read, ${size(head.done)} `;
  return `read ${sampled(picture)}, ${size(head.done)} `;
}

/** How much of what is shown was looked at: lines, or numbers where no line was read to its end. */
export function sampled(picture: Picture): string {
  const { head, numbers } = picture;
  const all = (head.rows[1] - head.rows[0]) * (head.cols[1] - head.cols[0]);
  const part = (100 * numbers) / Math.max(1, all);
  const percent = part < 1 ? "less than 1 %" : `${Math.floor(part)} %`;
  if (head.lines[0] === 0 || head.stride > 1) return `${grouped(numbers)} of ${grouped(all)} numbers (${percent})`;
  return `${grouped(head.lines[0])} of ${grouped(head.lines[1])} ${head.by_columns ? "columns" : "rows"} (${percent})`;
}

function described(picture: Picture): string {
  const { head } = picture;
  const bad = head.nans + head.positive_infinities + head.negative_infinities;
  const said = bad ? `${plural(head.nans, "NaN", "NaN")}, ${plural(head.positive_infinities + head.negative_infinities, "infinity", "infinities")}` : head.exact ? "no NaN, no infinity" : "no NaN seen";
  return `heat map, rows ${head.rows[0]} to ${head.rows[1]}, columns ${head.cols[0]} to ${head.cols[1]}: from ${short(head.min)} to ${short(head.max)}, ${said}; ${readNote(picture)}`;
}

function cellText(picture: Picture, [row, column]: [number, number]): string {
  const { r, c } = picture.range(row, column);
  const n = row * picture.wide + column;
  const isOne = r[1] - r[0] === 1 && c[1] - c[0] === 1;
  const bad = picture.notFinite(n) ? `  ${picture.nans[n]} NaN, ${picture.positive[n]} +Inf, ${picture.negative[n]} −Inf` : "";
  if (picture.finite[n] === 0 && !bad) return `cell ${r[0]}:${r[1]}, ${c[0]}:${c[1]}  not read`;
  if (isOne) return `[${r[0]}, ${c[0]}]  ${picture.finite[n] ? short(picture.mean[n]) : ""}${bad}`;
  return `cell ${r[0]}:${r[1]}, ${c[0]}:${c[1]}  min ${short(picture.min[n])}  max ${short(picture.max[n])}  mean ${short(picture.mean[n])}${bad}`;
}

/** Where the cursor is. */
function cross(screen: HTMLCanvasElement, picture: Picture, cursor: [number, number] | null): void {
  if (!cursor || document.activeElement !== screen) return;
  const context = screen.getContext("2d")!;
  const [x, y] = [(cursor[1] * screen.width) / picture.wide, (cursor[0] * screen.height) / picture.high];
  const [w, hh] = [Math.max(6, screen.width / picture.wide), Math.max(6, screen.height / picture.high)];
  context.lineWidth = 3;
  context.strokeStyle = "#fff";
  context.strokeRect(x - 1, y - 1, w + 2, hh + 2);
  context.lineWidth = 1;
  context.strokeStyle = "#000";
  context.strokeRect(x - 1, y - 1, w + 2, hh + 2);
}

export function colour(text: string): [number, number, number] {
  const digits = text.replace("#", "");
  return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16) || 0) as [number, number, number];
}
