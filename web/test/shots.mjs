// The pictures of the documentation: every screen, light and dark. `node test/shots.mjs COMMAND FILES OUT DROP FIXTURES`.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch, open, serve } from "./browser.mjs";

const [command, files, out, drop, fixtures] = process.argv.slice(2);
const fresh = process.argv.includes("--fresh");
mkdirSync(out, { recursive: true });
const browser = await launch();
const at = (name) => join(files, name);
const MODEL = [at("base.safetensors"), at("tuned.safetensors")];
// Checks come first: afterwards the overview knows the numbers.
const SHOTS = [
  [MODEL, [
    ["checks", "tab=checks"],
    ["overview", "tab=overview"],
    ["tensors", "tab=tensors&t=model.embed.weight"],
    ["values", "tab=tensors&t=model.embed.weight&view=values&slice=1098:1200,176:400"],
    ["histogram", "tab=tensors&t=model.embed.weight&view=histogram"],
    ["code", "tab=tensors&t=model.embed.weight&view=code&slice=0:512,0:64"],
    ["slices", "tab=tensors&t=vision.conv.weight"],
    ["metadata", "tab=metadata"],
    ["compare", "tab=compare&b=1"],
  ]],
  [[join(fixtures, "gguf/valid/bytes_after_data.gguf")], [["bytes", "tab=bytes"]]],
  [[at("wide.safetensors")], [["sampled", "tab=tensors&t=model.embed_tokens.weight"]]],
  [[at("broken.safetensors")], [["broken", "tab=overview"]]],
  [[join(fixtures, "safetensors/valid/metadata_only.safetensors")], [["empty", "tab=tensors"]]],
];
for (const colorScheme of ["light", "dark"]) {
  for (const [given, screens] of SHOTS) {
    const server = await serve(command, given.map((name) => name.split("/").pop()), [], given[0].slice(0, given[0].lastIndexOf("/")));
    const { page, complaints, context } = await open(browser, "about:blank", { colorScheme });
    if (fresh) {
      // What was built since the command was: with its headers.
      await page.route(/page\.(js|css)$|:\d+\/$/, async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ response: answer, body: readFileSync(`dist/${route.request().url().split("/").pop() || "index.html"}`) });
      });
    }
    await page.goto(server.address);
    await page.waitForSelector("nav");
    for (const [name, link] of screens) {
      await page.evaluate((hash) => (location.hash = hash), link);
      if (name === "checks") {
        for (const text of [/verify all/, /read all numbers/]) {
          await page.getByRole("button", { name: text }).click();
          await page.waitForFunction(() => !document.querySelector("progress"), null, { timeout: 120000 });
        }
      }
      if (name === "compare") await page.waitForSelector(".three canvas[data-ready='1']", { timeout: 120000 });
      if (["tensors", "slices", "sampled"].includes(name)) await page.waitForSelector("canvas.heat[data-ready='1']", { timeout: 60000 });
      await page.waitForTimeout(1200);
      await page.screenshot({ path: `${out}/${name}-${colorScheme}.png` });
    }
    const told = complaints.filter((text) => !/status of 4\d\d/.test(text));
    if (told.length) console.log(told);
    await context.close();
    server.end();
  }
  const { page, context } = await open(browser, pathToFileURL(join(drop, "tenfold.html")).href, { colorScheme });
  await page.waitForSelector(".drop");
  await page.screenshot({ path: `${out}/drop-${colorScheme}.png` });
  await context.close();
}
await browser.close();
