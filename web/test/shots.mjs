// The pictures of the documentation: every screen, light and dark. `node test/shots.mjs COMMAND FILES OUT`.
import { mkdirSync, readFileSync } from "node:fs";
import { launch, open, serve } from "./browser.mjs";

const [command, files, out] = process.argv.slice(2);
const fresh = process.argv.includes("--fresh");
mkdirSync(out, { recursive: true });
const browser = await launch();
// Checks come first: afterwards the overview knows the numbers.
const SHOTS = [
  ["checks", "tab=checks"],
  ["overview", "tab=overview"],
  ["tensors", "tab=tensors&t=model.embed.weight"],
  ["values", "tab=tensors&t=model.embed.weight&view=values&slice=1098:1200,176:400"],
  ["slices", "tab=tensors&t=vision.conv.weight"],
  ["bytes", "tab=bytes"],
  ["metadata", "tab=metadata"],
  ["compare", "tab=compare&b=1"],
];
for (const colorScheme of ["light", "dark"]) {
  const server = await serve(command, ["base.safetensors", "tuned.safetensors"], [], files);
  const { page, complaints } = await open(browser, "about:blank", { colorScheme });
  if (fresh) {
    // What was built since the command was: with its headers.
    await page.route(/page\.(js|css)$|:\d+\/$/, async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, body: readFileSync(`dist/${route.request().url().split("/").pop() || "index.html"}`) });
    });
  }
  await page.goto(server.address);
  await page.waitForSelector("nav");
  for (const [name, link] of SHOTS) {
    await page.evaluate((hash) => (location.hash = hash), link);
    if (name === "checks") {
      for (const text of [/verify all/, /read all numbers/]) {
        await page.getByRole("button", { name: text }).click();
        await page.waitForFunction(() => !document.querySelector("progress"), null, { timeout: 120000 });
      }
    }
    if (name === "compare") await page.waitForSelector(".three canvas[data-ready='1']", { timeout: 120000 });
    if (name === "tensors" || name === "slices") await page.waitForSelector("canvas.heat[data-ready='1']", { timeout: 60000 });
    await page.waitForTimeout(1200);
    await page.screenshot({ path: `${out}/${name}-${colorScheme}.png` });
  }
  if (complaints.length) console.log(complaints);
  server.end();
}
await browser.close();
