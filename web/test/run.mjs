// Both deliveries in a browser: `node test/run.mjs COMMAND FILES DROP FIXTURES`; `cargo xtask web test` calls it.
// Expected values are computed here from the files that `files.mjs` makes, never taken from the page.
import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync, readdirSync, statSync, truncateSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch, open, serve } from "./browser.mjs";
import { HOSTILE, exact, hostile, long, many, million, model, odd, sharded, sparse, stacks } from "./files.mjs";
import { writeFileSync } from "node:fs";

const [command, files, drop, fixtures, only] = process.argv.slice(2);
const at = (name) => join(files, name);
exact(at("exact.safetensors"));
hostile(at("hostile.safetensors"));
if (!existsSync(at("many.safetensors"))) many(at("many.safetensors"), 100000);
for (const name of ["sparse", "sparse2"]) if (!existsSync(at(`${name}.safetensors`))) sparse(at(`${name}.safetensors`));
for (const [name, tuned] of [["base", false], ["tuned", true]]) if (!existsSync(at(`${name}.safetensors`))) model(at(`${name}.safetensors`), tuned);
for (const [name, number] of [["base", 1], ["tuned", 2]]) sharded(at(`models/${name}`), number);
stacks(at("stacks.safetensors"), false);
stacks(at("stacks-tuned.safetensors"), true);
odd(at("odd.safetensors"));
long(at("long.safetensors"));
writeFileSync(at("broken.safetensors"), Buffer.from([255, 0, 0, 0, 0, 0, 0, 0, 123]));

const browser = await launch();
let [passed, failed] = [0, 0];
const tests = [];
const test = (name, run) => tests.push([name, run]);

/** A page on a server for some files; the console must stay silent. */
async function served(names, run, options = {}) {
  const server = await serve(command, names.map((name) => (name.startsWith("/") ? name : at(name))));
  const opened = await open(browser, server.address, options);
  try {
    await opened.page.waitForSelector("nav");
    await run(opened.page, opened, server);
    assert.deepEqual(opened.complaints.filter((text) => !/status of (4\d\d)/.test(text)), [], "the console says something");
  } finally {
    await opened.context.close();
    server.end();
  }
}

/** The drop page from a plain web server, or from a file. */
async function dropped(how, run) {
  const types = { html: "text/html", js: "text/javascript", css: "text/css", bin: "application/octet-stream", svg: "image/svg+xml" };
  const server = createServer((request, answer) => {
    const file = join(drop, "drop", request.url === "/" ? "index.html" : request.url.slice(1));
    if (!existsSync(file)) return answer.writeHead(404).end();
    answer.writeHead(200, { "Content-Type": types[file.split(".").pop()] }).end(readFileSync(file));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const address = how === "folder" ? `http://127.0.0.1:${server.address().port}/` : pathToFileURL(join(drop, "tenfold.html")).href;
  const opened = await open(browser, address);
  try {
    await opened.page.waitForSelector(".drop");
    await run(opened.page, opened);
    assert.deepEqual(opened.complaints, [], "the console says something");
  } finally {
    await opened.context.close();
    server.close();
  }
}

const heat = (page) => page.waitForSelector("canvas.heat[data-ready='1']", { timeout: 60000 });
const link = (page, hash) => page.evaluate((text) => (location.hash = text), hash);

/** The colours of the middle of every cell of the heat map. */
async function pixels(page, high, wide) {
  return page.evaluate(([rows, columns]) => {
    const canvas = document.querySelector("canvas.heat");
    const context = canvas.getContext("2d");
    const found = [];
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const x = Math.floor(((column + 0.5) * canvas.width) / columns);
        const y = Math.floor(((row + 0.5) * canvas.height) / rows);
        found.push([...context.getImageData(x, y, 1, 1).data.slice(0, 3)]);
      }
    }
    return found;
  }, [high, wide]);
}

const VIRIDIS = ["440154", "482878", "3e4a89", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"];
const RDBU = ["053061", "2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7", "fddbc7", "f4a582", "d6604d", "b2182b", "67001f"];

/** The colour of a value, from the stops of a map. */
function colour(stops, value, low, high) {
  const n = Math.max(0, Math.min(255, Math.floor(((value - low) / (high - low)) * 256)));
  const place = (n / 255) * (stops.length - 1);
  const stop = Math.min(stops.length - 2, Math.floor(place));
  return [0, 2, 4].map((digit) => {
    const [from, to] = [stop, stop + 1].map((which) => parseInt(stops[which].slice(digit, digit + 2), 16));
    return Math.round(from + (to - from) * (place - stop));
  });
}

test("pixels have the colours of their values", () => served(["exact.safetensors"], async (page) => {
  await link(page, "t=steps");
  await heat(page);
  // 36 values from 0 to 35: the 1st and 99th percentile are the first and the last.
  const steps = await pixels(page, 6, 6);
  steps.forEach((found, n) => assert.deepEqual(found, colour(VIRIDIS, n, 0, 35), `value ${n}`));
  await link(page, "t=signed");
  await heat(page);
  const signed = await pixels(page, 4, 8);
  signed.forEach((found, n) => {
    if (n === 13) return assert.deepEqual(found, [255, 0, 255], "NaN");
    if (n === 22) return assert.deepEqual(found, [255, 150, 255], "infinity");
    assert.deepEqual(found, colour(RDBU, n - 16, -16, 16), `value ${n - 16}`);
  });
  const said = await page.locator("#read").textContent();
  assert.match(said, /all 4 rows read/);
  assert.match(said, /1 NaN, 1 infinity/);
}));

test("axes, sliders and swapped axes show the right numbers", () => served(["exact.safetensors"], async (page) => {
  await link(page, "t=cube&at=2,0,0&domain=0,59");
  await heat(page);
  const plain = await pixels(page, 4, 5);
  plain.forEach((found, n) => assert.deepEqual(found, colour(VIRIDIS, 40 + n, 0, 59)));
  await link(page, "t=cube&axes=2,0&at=0,1,0&domain=0,59");
  await heat(page);
  const swapped = await pixels(page, 5, 3);
  swapped.forEach((found, n) => assert.deepEqual(found, colour(VIRIDIS, (n % 3) * 20 + 5 + Math.floor(n / 3), 0, 59)));
}));

test("values are exact, and NaN is marked", () => served(["exact.safetensors"], async (page) => {
  await link(page, "t=signed&view=values&slice=1:3,2:8");
  await page.waitForSelector(".value.bad");
  const texts = await page.locator(".values .list .value").allTextContents();
  const numbers = [10, 11, 12, 13, 14, 15, 18, 19, 20, 21, 22, 23];
  const wanted = numbers.map((n) => (n === 13 ? "nan" : n === 22 ? "inf" : `${n - 16}.0`));
  assert.deepEqual(texts, wanted);
}));

test("scalars, vectors and empty tensors look deliberate", () => served(["exact.safetensors"], async (page) => {
  await link(page, "t=scalar");
  await heat(page);
  assert.deepEqual(await pixels(page, 1, 1), [colour(VIRIDIS, 42, 41.5, 42.5)]);
  await link(page, "t=vector");
  await heat(page);
  await link(page, "t=nothing");
  await page.getByText("This tensor has no elements.").waitFor();
  await link(page, "t=unknown");
  await page.getByText("There is no tensor").waitFor();
}));

test("names are text, never markup", () => served(["hostile.safetensors"], async (page) => {
  for (const tab of ["overview", "tensors", "bytes", "metadata", "compare", "checks"]) {
    await link(page, `tab=${tab}`);
    await page.waitForTimeout(250);
    assert.equal(await page.locator("img").count(), 0, tab);
    assert.doesNotMatch(await page.title(), /owned/);
  }
  await link(page, `t=${encodeURIComponent(HOSTILE)}`);
  await heat(page);
  assert.equal(await page.locator("h1").textContent(), HOSTILE);
  for (const view of ["Values", "Histogram", "Bytes", "Copy code"]) {
    await page.getByRole("tab", { name: view }).click();
    await page.waitForTimeout(150);
    assert.equal(await page.locator("img").count(), 0, view);
  }
  assert.doesNotMatch(await page.title(), /owned/);
  const listed = await page.locator(".left .row").allTextContents();
  assert.ok(listed.some((text) => text.includes("\\u{202e}")), "what turns text around is written out");
  assert.ok(listed.every((text) => text.length < 400), "long names are cut");
}));

test("everything can be done with keys", () => served(["base.safetensors", "tuned.safetensors"], async (page) => {
  await page.keyboard.press("1");
  await page.getByText("Where the bytes are").waitFor();
  await page.keyboard.press("2");
  await page.keyboard.press("/");
  await page.keyboard.type("layers.3.mlp & dtype:bf16");
  await page.waitForFunction(() => document.querySelector(".status").textContent.startsWith("3 of"));
  await page.keyboard.press("Enter");
  await heat(page);
  assert.match(await page.locator("h1").textContent(), /^model\.layers\.3\.mlp\./);
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "tree");
  await page.keyboard.press("ArrowDown");
  for (const [key, view] of [["v", "Values"], ["h", "Histogram"], ["b", "Bytes"], ["c", "Copy code"], ["g", "Heat map"]]) {
    await page.keyboard.press(key);
    assert.equal(await page.locator(".views [aria-selected='true']").textContent(), view);
  }
  await heat(page);
  await page.keyboard.press("+");
  await heat(page);
  assert.match(await page.evaluate(() => location.hash), /slice=/);
  await page.keyboard.press("0");
  await heat(page);
  assert.doesNotMatch(await page.evaluate(() => location.hash), /slice=/);
  for (let n = 0; n < 40 && !(await page.evaluate(() => document.activeElement.matches("canvas.heat"))); n += 1) await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowRight");
  assert.match(await page.locator("#cell").textContent(), /\[0, 0\]|cell 0:/);
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  for (const [key, text] of [["3", "data"], ["4", "general.name"], ["6", "Soundness"]]) {
    await page.keyboard.press(key);
    await page.getByText(text).first().waitFor();
  }
  await page.keyboard.press("5");
  await page.waitForSelector(".three canvas[data-ready='1']", { timeout: 120000 });
  assert.match(await page.locator(".headline").textContent(), /147 tensors in both · 99 equal · 48 differ/);
}));

test("what is seen has a name for those who do not see it", () => served(["base.safetensors", "tuned.safetensors"], async (page) => {
  for (const tab of ["overview", "tensors&t=model.norm.weight", "bytes", "metadata", "compare", "checks"]) {
    await link(page, `tab=${tab}`);
    await page.waitForTimeout(600);
    const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, canvas, [role=slider], [role=tree], [role=grid]")]
      .filter((element) => element.offsetParent && !(element.getAttribute("aria-label") || element.textContent.trim() || element.labels?.length || element.title))
      .map((element) => element.outerHTML.slice(0, 120)));
    assert.deepEqual(nameless, [], tab);
    assert.equal(await page.locator("[aria-current='page']").count(), 1);
  }
  await page.setViewportSize({ width: 320, height: 640 });
  await link(page, "tab=overview");
  await page.waitForTimeout(400);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 330), "nothing is wider than a narrow screen");
}));

test("trees, lists, grids and tabs are what they are called", () => served(["base.safetensors", "tuned.safetensors"], async (page) => {
  await link(page, "a=0&t=model.norm.weight");
  await heat(page);
  const tabs = page.getByRole("tablist", { name: "views of the tensor" }).getByRole("tab");
  assert.equal(await tabs.count(), 5);
  assert.equal(await page.getByRole("tab", { selected: true }).textContent(), "Heat map");
  assert.equal(await page.getByRole("tabpanel", { name: "Heat map" }).count(), 1);
  await page.getByRole("tab", { selected: true }).focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Values");
  await page.getByRole("tabpanel", { name: "Values" }).waitFor();
  const grid = page.getByRole("grid", { name: "values" });
  assert.equal(await grid.getAttribute("aria-rowcount"), await grid.evaluate((list) => list.dataset.count));
  const tree = page.getByRole("tree", { name: "tensors" });
  assert.equal(await tree.getAttribute("aria-rowcount"), null);
  const item = tree.getByRole("treeitem", { selected: true });
  assert.match(await item.textContent(), /norm\.weight/);
  assert.equal(await item.getAttribute("aria-level"), "2");
  assert.equal(await tree.getAttribute("aria-activedescendant"), await item.getAttribute("id"));
  await page.keyboard.press("5");
  await page.waitForSelector(".three canvas[data-ready='1']", { timeout: 120000 });
  const list = page.getByRole("listbox", { name: "changes" });
  assert.equal(await list.getByRole("option", { selected: true }).count(), 1);
  assert.equal(await list.getByRole("option").first().getAttribute("aria-setsize"), "49");
  await page.keyboard.press("1");
  await page.getByRole("group", { name: "where the bytes are" }).waitFor();
  await page.locator(".treemap + .twin summary").click();
  assert.match(await page.locator(".treemap + .twin tbody").textContent(), /embed/);
}));

for (const colorScheme of ["light", "dark"]) {
  test(`text and the edges of controls stand out (${colorScheme})`, () => served(["base.safetensors", "tuned.safetensors"], async (page) => {
    for (const tab of ["overview", "tensors&t=model.embed.weight", "tensors&t=model.embed.weight&view=values&slice=1098:1200,176:400", "tensors&t=model.norm.weight&view=bytes", "tensors&t=model.norm.weight&view=code", "bytes", "metadata", "compare&b=1", "checks"]) {
      await link(page, `tab=${tab}`);
      await page.waitForTimeout(1000);
      const faint = await page.evaluate(() => {
        const parse = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
        const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
        const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
        const behind = (element) => {
          for (let at = element; at; at = at.parentElement) {
            const found = parse(getComputedStyle(at).backgroundColor);
            if (found.length === 3 || found[3] === 1) return found;
          }
          return [255, 255, 255];
        };
        const found = new Set();
        for (const element of document.querySelectorAll("body *")) {
          if (!element.checkVisibility() || element.closest("[disabled]") || element.closest(".unseen")) continue;
          const style = getComputedStyle(element);
          const said = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
          const [text, back] = [parse(style.color), behind(element)];
          if (said && contrast(text, back) < 4.5) found.add(`${element.tagName}.${element.className}: ${contrast(text, back).toFixed(2)}`);
          if (/^(INPUT|SELECT|BUTTON)$/.test(element.tagName) && !/^(checkbox|range)$/.test(element.type) && contrast(parse(style.borderTopColor), behind(element.parentElement)) < 3) found.add(`edge of ${element.outerHTML.slice(0, 80)}`);
        }
        return [...found];
      });
      assert.deepEqual(faint, [], tab);
    }
  }, { colorScheme }));
}

test("who wants nothing to move sees finished pictures only", () => served(["base.safetensors"], async (page) => {
  await link(page, "t=model.embed.weight");
  await heat(page);
  assert.match(await page.locator("#read").textContent(), /all 2\u202f048 rows read/);
}, { reducedMotion: "reduce" }));

test("links lead to the same place, and Back goes back", () => served(["exact.safetensors"], async (page) => {
  await link(page, "t=steps&slice=1:4,2:5&domain=0,35");
  await heat(page);
  const part = await pixels(page, 3, 3);
  part.forEach((found, n) => assert.deepEqual(found, colour(VIRIDIS, (1 + Math.floor(n / 3)) * 6 + 2 + (n % 3), 0, 35)));
  await page.keyboard.press("4");
  await page.waitForFunction(() => location.hash.includes("metadata"));
  await page.goBack();
  await heat(page);
  assert.match(await page.evaluate(() => location.hash), /t=steps/);
}));

test("links keep the lines of a vector and a chosen axis", () => served(["long.safetensors", "exact.safetensors"], async (page) => {
  await link(page, "t=vector&fold=100&slice=300:500&domain=0,99999");
  await heat(page);
  // Lines 3 and 4, of a hundred each.
  const found = await pixels(page, 2, 100);
  found.forEach((pixel, n) => assert.deepEqual(pixel, colour(VIRIDIS, 300 + n, 0, 99999), `value ${300 + n}`));
  assert.equal(await page.locator(".slice").textContent(), "[300:500]");
  await link(page, "t=vector&view=values");
  await page.waitForSelector(".values .list .value");
  assert.equal(await page.locator(".values .list .value").first().textContent(), "0.0");
  await link(page, "a=1&t=cube");
  await heat(page);
  await page.getByLabel("dimension of the columns").selectOption("0");
  await heat(page);
  assert.match(await page.evaluate(() => location.hash), /axes=1,0/);
  await page.reload();
  await heat(page);
  assert.equal(await page.getByLabel("dimension of the columns").inputValue(), "0");
}));

test("of long rows a stretch of each cell is read, and that is said", () => served(["long.safetensors"], async (page) => {
  await link(page, "t=rows");
  await heat(page);
  assert.match(await page.locator("#read").textContent(), /^read [\d\u202f]+ of 33\u202f554\u202f432 numbers \(2\d %\)/);
  await page.getByRole("button", { name: "read all" }).click();
  await page.waitForFunction(() => document.querySelector("#read")?.textContent.startsWith("all 4 rows read"), null, { timeout: 60000 });
}));

test("names may have as many segments as they like, and begin with anything", () => served(["odd.safetensors"], async (page) => {
  await page.getByText("Where the bytes are").waitFor();
  await page.keyboard.press("2");
  await page.waitForFunction(() => document.querySelectorAll(".left .row").length > 0);
  const listed = await page.locator(".left .row").allTextContents();
  assert.ok(listed.some((text) => text.includes("\\u{feff}marked")), "the mark of byte order is part of the name");
  assert.ok((await page.evaluate(() => Number(document.querySelector(".left .list").dataset.count))) < 200);
  await page.keyboard.press("4");
  await page.evaluate(() => (navigator.clipboard.writeText = async (text) => (globalThis.copied = text)));
  await page.getByRole("button", { name: "copy long" }).click();
  await page.waitForFunction(() => globalThis.copied !== undefined);
  assert.equal(await page.evaluate(() => globalThis.copied), "x".repeat(5000), "what is copied is the whole value");
}));

test("layers of an encoder are none of a decoder, and what is not finite on one side is marked", () => served(["stacks.safetensors", "stacks-tuned.safetensors"], async (page) => {
  await page.waitForSelector(".headline");
  assert.match(await page.locator(".headline").textContent(), /7 tensors in both · 5 equal · 2 differ/);
  assert.match(await page.locator(".compare .scroll canvas").getAttribute("aria-label"), /2 kinds of tensors in 3 layers/);
  const kinds = await page.locator(".legend").textContent();
  assert.match(kinds, /no number/);
  await page.locator(".change", { hasText: "decoder.layers.2.w" }).click();
  assert.equal(await page.locator(".change.chosen").count(), 1);
  assert.match(await page.locator(".change.chosen").textContent(), /decoder\.layers\.2\.w/);
  // The one number that differs is at [1, 1, 0]: at the first index of the first axis all is equal.
  const most = async () => {
    await page.waitForSelector(".three canvas[data-ready='1']");
    return /difference ±(\S+);/.exec(await page.locator(".beside3").textContent())?.[1];
  };
  assert.equal(await most(), "0");
  await page.getByLabel("index along axis 0").fill("1");
  await page.waitForFunction(() => /difference ±5;/.test(document.querySelector(".beside3").textContent));
  await page.locator(".change", { hasText: "odd" }).click();
  await page.waitForFunction(() => /not finite/.test(document.querySelector(".beside3").textContent));
  const marked = await page.evaluate(() => {
    const canvas = document.querySelectorAll(".three canvas")[2];
    return [...canvas.getContext("2d").getImageData(Math.floor(canvas.width * 0.75), Math.floor(canvas.height * 0.25), 1, 1).data.slice(0, 3)];
  });
  assert.deepEqual(marked, [255, 0, 255]);
}));

test("two models that are large are compared by name until somebody asks", () => served(["sparse.safetensors", "sparse2.safetensors"], async (page) => {
  await page.waitForSelector(".offer");
  assert.match(await page.locator(".headline").textContent(), /2 tensors in both · 0 only left/);
  await page.getByRole("button", { name: /compare all numbers, reads/ }).waitFor();
}));

test("leaving a screen ends its work", () => served(["sparse.safetensors"], async (page) => {
  let steps = 0;
  page.on("request", (request) => (steps += request.url().includes("api/step") ? 1 : 0));
  await link(page, "tab=checks");
  await page.getByRole("button", { name: /read all numbers/ }).click();
  await page.waitForSelector("progress");
  await page.waitForFunction(() => document.querySelector(".checks .num").textContent.includes(" of "));
  await page.keyboard.press("1");
  await page.getByText("Where the bytes are").waitFor();
  // The step that is under way ends; none follows.
  await page.waitForTimeout(500);
  const then = steps;
  assert.ok(then > 0);
  await page.waitForTimeout(500);
  assert.equal(steps, then);
}));

test("an address is good for one page", () => served(["exact.safetensors"], async (page, _, server) => {
  const other = await open(browser, server.address);
  await other.page.getByText("This page needs its address.").waitFor();
  await other.page.getByText("opened already").waitFor();
  await other.context.close();
  await page.reload();
  await page.getByText("Where the bytes are").waitFor();
}));

test("a hundred thousand tensors", () => served(["many.safetensors"], async (page) => {
  await page.getByText("Where the bytes are").waitFor({ timeout: 30000 });
  await page.keyboard.press("2");
  await page.keyboard.press("t");
  await page.waitForFunction(() => document.querySelector(".list").dataset.count === "100000", null, { timeout: 20000 });
  await page.evaluate(() => (document.querySelector(".list").scrollTop = 1e9));
  await page.waitForFunction(() => [...document.querySelectorAll(".left .row")].some((row) => row.textContent.includes("layers.999")));
  assert.ok((await page.locator(".left .row").count()) < 120, "only rows that are seen exist");
  await page.keyboard.press("/");
  await page.keyboard.type("layers.77.experts.3");
  await page.waitForFunction(() => document.querySelector(".status").textContent.startsWith("10 of 100"), null, { timeout: 20000 });
}));

test("a million tensors", () => {
  if (!existsSync(at("million.safetensors"))) million(at("million.safetensors"));
  return served(["million.safetensors"], async (page) => {
    await page.getByText("Where the bytes are").waitFor({ timeout: 60000 });
    await page.keyboard.press("2");
    await page.keyboard.press("t");
    await page.waitForFunction(() => document.querySelector(".list")?.dataset.count === "1000000", null, { timeout: 60000 });
    await page.evaluate(() => (document.querySelector(".list").scrollTop = 1e12));
    await page.waitForFunction(() => [...document.querySelectorAll(".left .row")].some((row) => row.textContent.includes("l9999.e9.p9")));
    await page.keyboard.press("/");
    await page.keyboard.type("l777.e3");
    await page.waitForFunction(() => document.querySelector(".status").textContent.startsWith("10 of 1"), null, { timeout: 20000 });
  });
});

test("a file of 3 GiB is sampled, and that is said", () => served(["sparse.safetensors"], async (page) => {
  await link(page, "t=hole");
  await heat(page);
  const said = await page.locator("#read").textContent();
  assert.match(said, /read \d+ of 28\u202f672 rows/);
  assert.match(await page.locator(".figures-table").textContent(), /none seen/);
  await link(page, "t=end");
  await heat(page);
  assert.deepEqual((await pixels(page, 2, 2))[0], colour(VIRIDIS, 1, 1, 4));
}));

test("a file that shrinks is told, not shown", async () => {
  copyFileSync(at("base.safetensors"), at("shrinks.safetensors"));
  await served(["shrinks.safetensors"], async (page) => {
    await page.getByText("Where the bytes are").waitFor();
    truncateSync(at("shrinks.safetensors"), 100000);
    await link(page, "t=vision.conv.weight");
    await page.waitForSelector(".reason");
    assert.match(await page.locator(".reason").textContent(), /■/);
  });
});

test("a broken file says what is wrong", () => served(["broken.safetensors"], async (page) => {
  await page.getByText("This file cannot be opened.").waitFor();
  assert.match(await page.locator(".broken").textContent(), /safetensors\./);
}));

/** Valid files, and folders that are one archive: those that a description lies beside. */
function valid(formats) {
  const found = [];
  for (const format of formats) {
    const folder = join(fixtures, format, "valid");
    if (!existsSync(folder)) continue;
    for (const name of readdirSync(folder).sort()) {
      const path = join(folder, name);
      const isFolder = statSync(path).isDirectory();
      // The data of cc4s lies in files of its own; every golden file has a description beside it.
      const isData = format === "cc4s" && !name.endsWith(".yaml");
      const isDescribed = existsSync(join(folder, `${name}.json`)) || existsSync(join(folder, name.replace(/\.[^.]*$/, ".json")));
      if (isDescribed && !isData && !name.endsWith(".json") && (isFolder || statSync(path).size < 8 << 20) && !OTHERWISE(path)) found.push(path);
    }
  }
  return found;
}

/** These are opened by options, or in a folder below. */
const OTHERWISE = (path) => path.includes("/raw/") || path.endsWith("tf_checkpoint/valid/saved_model");

/** They are read with files beside them, which are not dropped here. */
const BESIDE = ["v2_heap.zt", "v2_shards.zt"];

/** Asks the same of every archive: what there is, a picture or a reason for every tensor, or for the first so many, and all else
 * that can be asked where that is wanted. Gives hashes of the answers.
 * Of complex numbers the real part: a modulus goes through the mathematics of the platform, whose last bit may differ. */
const EVERYTHING = async ([numbers, most, isFull]) => {
  const text = (bytes) => new TextDecoder().decode(bytes);
  const hash = async (bytes) => [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))].slice(0, 8).join();
  const ask = async (question) => {
    try {
      return [true, await globalThis.tenfold.ask(question)];
    } catch (error) {
      return [false, new TextEncoder().encode(JSON.stringify(error.failure ?? String(error))).buffer];
    }
  };
  const answers = {};
  const seen = { tensors: 0, pictures: 0, reasons: 0, neither: [] };
  const { archives } = JSON.parse(text(await globalThis.tenfold.ask("hello")));
  const finish = async (question) => {
    const [began, job] = await ask(question);
    return began ? ask(`step?job=${JSON.parse(text(job)).job}&bytes=1000000000`) : [began, job];
  };
  for (const [n, a] of numbers.entries()) {
    // A file has another name in each of them: a path, and what was dropped.
    const name = JSON.stringify(archives.find((one) => one.a === a).name).slice(1, -1);
    const nameless = (bytes) => new TextEncoder().encode(text(bytes).replaceAll(name, "NAME").replaceAll(name.split("/").pop(), "NAME"));
    for (const question of ["columns", "extents", "meta"]) answers[`${question} ${n}`] = await hash((await ask(`${question}?a=${a}`))[1]);
    for (const question of ["summary", "findings"]) answers[`${question} ${n}`] = await hash(nameless((await ask(`${question}?a=${a}`))[1]));
    answers[`verify ${n}`] = await hash(nameless((await finish(`verify?a=${a}`))[1]));
    const [isGood, columns] = await ask(`columns?a=${a}`);
    if (!isGood) {
      seen.neither.push([n, text(columns)]);
      continue;
    }
    const head = JSON.parse(text(new Uint8Array(columns, 4, new DataView(columns).getUint32(0, true))));
    for (let t = 0; t < Math.min(head.tensors, most); t += 1) {
      seen.tensors += 1;
      const [drawn, bytes] = await finish(`tile?a=${a}&t=${t}&h=16&w=16&component=0`);
      if (drawn) seen.pictures += 1;
      else if (JSON.parse(text(bytes)).error) seen.reasons += 1;
      else seen.neither.push([n, t, text(bytes)]);
      answers[`tile ${n} ${t}`] = await hash(bytes);
      if (!isFull) continue;
      const keep = async (what, answer) => {
        const bytes = (await answer)[1];
        answers[`${what} ${n} ${t}`] = await hash(["stored", "npy"].includes(what) ? bytes : nameless(bytes));
      };
      await Promise.all([
        keep("stored", ask(`stored?a=${a}&t=${t}&n=64`)), keep("values", ask(`values?a=${a}&t=${t}`)), keep("npy", ask(`npy?a=${a}&t=${t}`)),
        keep("tensor", ask(`tensor?a=${a}&t=${t}`)), keep("snippet", ask(`snippet?a=${a}&t=${t}`)), keep("stats", finish(`stats?a=${a}&t=${t}&bins=8`)),
      ]);
    }
  }
  return { answers, seen };
};

/** The numbers of archives: some folders have more than one, of which the first has the name of the folder. */
async function numbersOf(page, paths) {
  const { archives } = JSON.parse(await page.evaluate(async () => new TextDecoder().decode(await globalThis.tenfold.ask("hello"))));
  const numbers = new Map(archives.map((one) => [one.name, one.a]));
  return paths.map((path) => {
    assert.ok(numbers.has(path), `${path} is not open`);
    return numbers.get(path);
  });
}

test("every tensor of every valid file has a picture or a reason", async () => {
  const all = valid(readdirSync(fixtures));
  await served(all, async (page) => {
    const { seen } = await page.evaluate(EVERYTHING, [await numbersOf(page, all), 10000, false]);
    assert.deepEqual(seen.neither, []);
    assert.equal(seen.pictures + seen.reasons, seen.tensors);
    assert.ok(seen.pictures > 500, `${seen.pictures} pictures`);
    console.log(`    ${all.length} files, ${seen.tensors} tensors: ${seen.pictures} pictures, ${seen.reasons} reasons`);
  });
});

/** Drops a file or a folder, and gives the number of what was opened of it. */
async function dropOne(page, path) {
  const hello = () => page.evaluate(async () => JSON.parse(new TextDecoder().decode(await globalThis.tenfold.ask("hello"))).archives.map((one) => one.a));
  const before = new Set(await hello());
  await page.setInputFiles(statSync(path).isDirectory() ? "#folder" : "#files", path);
  await page.waitForFunction((count) => document.documentElement.dataset.opened === String(count), (opened.get(page) ?? 0) + 1, { polling: 20, timeout: 60000 });
  opened.set(page, (opened.get(page) ?? 0) + 1);
  return (await hello()).find((a) => !before.has(a));
}
const opened = new WeakMap();

for (const how of ["folder", "file"]) {
  test(`the drop page (${how}) answers byte for byte as the command does, offline`, async () => {
    const all = valid(readdirSync(fixtures)).filter((path) => !BESIDE.some((name) => path.endsWith(name)) && !path.includes("/cc4s/"));
    const some = how === "file" ? all.filter((_, n) => n % 12 === 0) : all;
    let native;
    await served(some, async (page) => {
      native = await page.evaluate(EVERYTHING, [await numbersOf(page, some), 20, true]);
    });
    await dropped(how, async (page, { context }) => {
      // What reads all formats is loaded once; from then on nothing is.
      if (how === "folder") await dropOne(page, join(fixtures, "onnx/valid", readdirSync(join(fixtures, "onnx/valid")).find((name) => name.endsWith(".onnx"))));
      await context.setOffline(true);
      const numbers = [];
      for (const path of some) numbers.push(await dropOne(page, path));
      const own = await page.evaluate(EVERYTHING, [numbers, 20, true]);
      const different = Object.keys(native.answers).filter((key) => native.answers[key] !== own.answers[key]);
      assert.deepEqual(different.map((key) => `${key}: ${some[Number(key.split(" ")[1])].slice(fixtures.length)}`), []);
      assert.equal(own.seen.pictures, native.seen.pictures);
      console.log(`    ${some.length} files and folders, ${own.seen.tensors} tensors, ${Object.keys(own.answers).length} answers equal`);
    });
  });
}

test("damaged files are refused by their rule, and end nothing", async () => {
  const all = [];
  for (const format of readdirSync(fixtures)) {
    const folder = join(fixtures, format, "reject");
    if (!existsSync(folder)) continue;
    for (const name of readdirSync(folder).sort()) {
      const path = join(folder, name);
      const about = [`${path}.json`, path.replace(/\.[^./]*$/, ".json")].find((file) => file !== path && existsSync(file));
      if (!about || name.endsWith(".json") || !statSync(path).isFile()) continue;
      const { rule, operation, refuse, open: how } = JSON.parse(readFileSync(about, "utf8"));
      // Some are refused by other work than looking.
      if (rule && !operation && !refuse && !how) all.push({ path, rule });
    }
  }
  await served(all.map((one) => one.path), async (page) => {
    const rules = await page.evaluate(async (numbers) => {
      const text = (bytes) => new TextDecoder().decode(bytes);
      const ask = async (question) => {
        try {
          return JSON.parse(text(await globalThis.tenfold.ask(question)));
        } catch (error) {
          return { failure: error.failure };
        }
      };
      const found = [];
      for (const a of numbers) {
        const own = new Set();
        const summary = await ask(`summary?a=${a}`);
        if (summary.failure) own.add(summary.failure.rule);
        else {
          const { job } = await ask(`verify?a=${a}`);
          const step = await ask(`step?job=${job}&bytes=1000000000`);
          for (const { rule } of step.result?.findings ?? []) own.add(rule);
          own.add(step.failure?.rule);
        }
        found.push([...own]);
      }
      return found;
    }, await numbersOf(page, all.map((one) => one.path)));
    const missed = all.filter(({ rule }, n) => !rules[n].includes(rule)).map(({ path, rule }) => `${path.slice(fixtures.length)}: ${rule}`);
    console.log(`    ${all.length} damaged files, ${all.length - missed.length} refused by their rule${missed.length ? `; not ${missed.join(", ")}` : ""}`);
    assert.deepEqual(missed, []);
  });
});

test("two files dropped are compared, and a large one is read in parts", () => dropped("folder", async (page) => {
  await page.setInputFiles("#files", [at("base.safetensors"), at("tuned.safetensors")]);
  await page.waitForSelector(".three canvas[data-ready='1']", { timeout: 180000 });
  assert.match(await page.locator(".headline").textContent(), /147 tensors in both · 99 equal · 48 differ/);
}));

test("folders with shards of the same names are two models", () => dropped("folder", async (page) => {
  await page.setInputFiles("#folder", at("models"));
  await page.waitForSelector(".headline", { timeout: 60000 });
  assert.match(await page.locator(".headline").textContent(), /4 tensors in both · 0 equal · 4 differ/);
  // 1 in one of them, 2 in the other.
  assert.match(await page.locator(".change").first().textContent(), /rel 1 +max 1 +16 numbers/);
  const names = await page.getByLabel("left", { exact: true }).locator("option").allTextContents();
  assert.deepEqual(names, ["models/base", "models/tuned"]);
}));

test("the parts of a model are one model", () => dropped("folder", async (page) => {
  const folder = join(fixtures, "gguf/valid/split_3");
  const parts = readdirSync(folder).filter((name) => name.endsWith(".gguf")).map((name) => join(folder, name));
  assert.ok(parts.length > 1);
  await page.setInputFiles("#files", parts);
  await page.getByText("Where the bytes are").waitFor();
  const { archives } = JSON.parse(await page.evaluate(async () => new TextDecoder().decode(await globalThis.tenfold.ask("hello"))));
  assert.equal(archives.length, 1);
}));

test("a worker that cannot begin is not started again and again", async () => {
  let asked = 0;
  const server = createServer((request, answer) => {
    const name = request.url === "/" ? "index.html" : request.url.slice(1);
    const file = join(drop, "drop", name);
    if (name === "tenfold.bin") asked += 1;
    if (name === "tenfold.bin" || !existsSync(file)) return answer.writeHead(404).end();
    answer.writeHead(200, { "Content-Type": { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" }[name.split(".").pop()] }).end(readFileSync(file));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const opened = await open(browser, `http://127.0.0.1:${server.address().port}/`);
  try {
    await opened.page.getByText("The page cannot start.").waitFor();
    await opened.page.getByText("tenfold.bin, which belongs beside this page, cannot be loaded (404)").waitFor();
    await opened.page.waitForTimeout(500);
    assert.equal(asked, 1);
  } finally {
    await opened.context.close();
    server.close();
  }
});

for (const [name, run] of tests) {
  if (only && !new RegExp(only).test(name)) continue;
  const begin = Date.now();
  try {
    await run();
    passed += 1;
    console.log(`ok      ${name} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
