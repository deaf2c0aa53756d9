// The goals of the viewer, measured: `node test/bench.mjs COMMAND FILES`; `cargo xtask bench view` calls it.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { launch, open, serve } from "./browser.mjs";
import { many, safetensors } from "./files.mjs";

const [command, files] = process.argv.slice(2);
const big = join(files, "big.safetensors");
if (!existsSync(big)) safetensors(big, [{ name: "matrix", dtype: "F32", shape: [16384, 16384], bytes: null }], {});
const list = join(files, "many.safetensors");
if (!existsSync(list)) many(list, 100000);
const browser = await launch();
const rows = [];
const row = (what, seconds, goal) => rows.push([what, seconds, goal]);

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
  const took = await page.evaluate(async () => {
    const find = document.querySelector(".filter");
    const status = document.querySelector(".status");
    const before = status.textContent;
    find.value = "experts.3";
    const from = performance.now();
    find.dispatchEvent(new Event("input"));
    while (status.textContent === before) await new Promise((done) => setTimeout(done, 1));
    return performance.now() - from;
  });
  row("filter at 100 000, with the pause before it", took / 1000, 0.1);
});

await on(big, async (page) => {
  await page.waitForSelector("nav");
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
  row("1 GiB matrix: first picture", first, 0.1);
  row("1 GiB matrix: sampled, 512 rows", sampled, 0.4);
  row("1 GiB matrix: exact", (await timed("&all=1"))[1], 0.5);
});
await browser.close();

console.log("| what | seconds | goal | met |\n|---|---|---|---|");
for (const [what, seconds, goal] of rows) console.log(`| ${what} | ${seconds.toFixed(2)} | ${goal} | ${seconds <= goal ? "yes" : "no"} |`);
const size = ["index.html", "page.css", "page.js"].reduce((sum, name) => sum + gzipSync(readFileSync(join("dist", name)), { level: 9 }).length, 0);
console.log(`| page, KB gzip | ${(size / 1024).toFixed(1)} | 45 | ${size <= 45 * 1024 ? "yes" : "no"} |`);
