// Starts `tenfold view` and a browser for it.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const FLAGS = ["--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export async function launch() {
  const root = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: [...FLAGS, ...root] });
}

/** A server for some files; `address` is good for one page. */
export async function serve(command, files, more = [], cwd = undefined) {
  const process_ = spawn(command, ["view", "--no-open", ...more, ...files], { stdio: ["ignore", "pipe", "pipe"], cwd });
  let said = "";
  process_.stderr.on("data", (text) => (said += text));
  const lines = createInterface({ input: process_.stdout });
  const address = await new Promise((done, failed) => {
    lines.once("line", done);
    process_.once("exit", () => failed(new Error(`tenfold view ended: ${said}`)));
  });
  return { address, end: () => process_.kill("SIGKILL") };
}

/** A page that has the console's complaints with it. */
export async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(address);
  return { page, context, complaints };
}
