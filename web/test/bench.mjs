// The goals of the viewer, measured: `node test/bench.mjs COMMAND FILES DROP`; `cargo xtask bench view` calls it.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { launch, open, serve } from "./browser.mjs";
import { many, safetensors } from "./files.mjs";

const [command, files, drop] = process.argv.slice(2);
const big = join(files, "big.safetensors");
if (!existsSync(big)) safetensors(big, [{ name: "matrix", dtype: "F32", shape: [16384, 16384], bytes: null }], {});
const list = join(files, "many.safetensors");
if (!existsSync(list)) many(list, 100000);
const huge = join(files, "huge.safetensors");
// Offsets beyond 2^32, in a file that takes no room.
if (!existsSync(huge)) safetensors(huge, Array.from({ length: 10 }, (_, n) => ({ name: `layers.${n}.w`, dtype: "F32", shape: [16384, 16384], bytes: null })), {});
const browser = await launch();
const rows = [];
const row = (what, measured, goal, unit = "s") => rows.push([what, measured, goal, unit]);

async function on(file, run) {
  const begin = performance.now();
  const server = await serve(command, [file]);
  const opened = await open(browser, server.address);
  try {
    await run(opened.page, begin);
  } finally {
    await opened.context.close();
    server.end();
  }
}
const since = (begin) => (performance.now() - begin) / 1000;

await on(list, async (page, begin) => {
  await page.waitForSelector("nav");
  row("`tenfold view` to first paint", since(begin), 0.5);
  await page.waitForSelector(".figures");
  row("100 000 tensors: figures shown", since(begin), 0.8);
  const clicked = performance.now();
  await page.keyboard.press("2");
  await page.waitForSelector(".left .row");
  row("100 000 tensors: list shown", since(clicked), 0.3);
  await page.keyboard.press("t");
  await page.keyboard.press("/");
  const type = (text) => page.evaluate(async (typed) => {
    const find = document.querySelector(".filter");
    const status = document.querySelector(".status");
    const before = status.textContent;
    find.value = typed;
    const from = performance.now();
    find.dispatchEvent(new Event("input"));
    while (status.textContent === before) await new Promise((done) => setTimeout(done));
    return performance.now() - from;
  }, text);
  row("100 000 tensors: first letter of a filter", await type("e") / 1000, 0.05);
  row("100 000 tensors: any further one", await type("experts.3") / 1000, 0.016);
  await type("");
  const frame = await page.evaluate(async () => {
    const list = document.querySelector(".left .list");
    let worst = 0;
    for (let n = 1; n <= 50; n += 1) {
      list.scrollTop = n * 5000;
      const from = performance.now();
      list.dispatchEvent(new Event("scroll"));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      worst = Math.max(worst, performance.now() - from);
    }
    return worst;
  });
  row("100 000 tensors: the longest of 50 frames while scrolling", frame / 1000, 0.033);
  row("100 000 tensors: memory of the page", (await page.evaluate(() => performance.memory.usedJSHeapSize)) / 2 ** 20, 30, "MiB");
});

await on(huge, async (page, begin) => {
  await page.waitForSelector(".figures");
  row("a file of 10 GiB: figures shown", since(begin), 0.8);
});

/** Pictures of the matrix, asked for as the page asks. */
async function pictures(page, where, goals) {
  const timed = (all) => page.evaluate(async (query) => {
    const text = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
    const from = performance.now();
    const { job } = text(await globalThis.tenfold.ask(`tile?a=0&t=0&h=512&w=512${query}`));
    let first = 0;
    for (;;) {
      const bytes = await globalThis.tenfold.ask(`step?job=${job}&bytes=${query ? 1 << 28 : 4 << 20}`);
      first ||= performance.now() - from;
      if (text(new Uint8Array(bytes, 4, new DataView(bytes).getUint32(0, true))).finished) return [first / 1000, (performance.now() - from) / 1000];
    }
  }, all);
  const [first, sampled] = await timed("");
  row(`1 GiB matrix, ${where}: first picture`, first, goals[0]);
  row(`1 GiB matrix, ${where}: sampled, 512 rows`, sampled, goals[1]);
  row(`1 GiB matrix, ${where}: exact`, (await timed("&all=1"))[1], goals[2]);
}

await on(big, async (page) => {
  await page.waitForSelector("nav");
  await pictures(page, "served", [0.1, 0.4, 0.5]);
});

async function dropped(run) {
  const begin = performance.now();
  const { page, context } = await open(browser, pathToFileURL(join(drop, "tenfold.html")).href);
  try {
    await page.waitForSelector(".drop");
    await run(page, since(begin));
  } finally {
    await context.close();
  }
}
await dropped(async (page, took) => {
  row("page of one file, nothing open", took, 0.5);
  const begin = performance.now();
  await page.setInputFiles("#files", list);
  await page.waitForSelector(".figures", { timeout: 60000 });
  row("100 000 tensors dropped: figures shown", since(begin), 0.5);
});
await dropped(async (page) => {
  await page.setInputFiles("#files", big);
  await page.waitForSelector(".figures", { timeout: 60000 });
  await pictures(page, "dropped", [0.1, 0.4, 4]);
});
await browser.close();

console.log("| what | measured | goal | met |\n|---|---|---|---|");
for (const [what, measured, goal, unit] of rows) console.log(`| ${what} | ${measured.toFixed(unit === "s" ? 3 : 1)} ${unit} | ${goal} ${unit} | ${measured <= goal ? "yes" : "no"} |`);
const size = ["index.html", "page.css", "page.js"].reduce((sum, name) => sum + gzipSync(readFileSync(join("dist", name)), { level: 9 }).length, 0);
console.log(`| page, gzip | ${(size / 1024).toFixed(1)} KB | 45 KB | ${size <= 45 * 1024 ? "yes" : "no"} |`);
