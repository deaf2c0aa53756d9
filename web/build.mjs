// Builds the page: `node build.mjs OUT`. `cargo xtask web` calls it.
import * as esbuild from "esbuild";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const out = process.argv[2] ?? "dist";
mkdirSync(out, { recursive: true });
const common = { bundle: true, minify: true, target: "es2022", legalComments: "none", write: false, charset: "utf8" };
const script = (await esbuild.build({ ...common, entryPoints: ["src/main.ts"], format: "iife" })).outputFiles[0].text;
const style = (await esbuild.build({ ...common, entryPoints: ["src/page.css"] })).outputFiles[0].text;
const html = readFileSync("src/index.html", "utf8");
const page = (mode, head, scripts) => html.replace("MODE", mode).replace("HEAD", () => head).replace("SCRIPTS", () => scripts);

writeFileSync(join(out, "page.js"), script);
writeFileSync(join(out, "page.css"), style);
writeFileSync(join(out, "icon.svg"), readFileSync("src/icon.svg"));
writeFileSync(
  join(out, "index.html"),
  page("served", '<link rel="icon" href="icon.svg">\n<link rel="stylesheet" href="page.css">', '<script src="page.js"></script>'),
);
