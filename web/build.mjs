// Builds the page: `node build.mjs OUT`. `cargo xtask web` calls it.
import * as esbuild from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const out = process.argv[2] ?? "dist";
mkdirSync(out, { recursive: true });
const common = { bundle: true, minify: true, target: "es2022", legalComments: "none", write: false, charset: "utf8" };
const script = (await esbuild.build({ ...common, entryPoints: ["src/main.ts"], format: "iife" })).outputFiles[0].text;
const style = (await esbuild.build({ ...common, entryPoints: ["src/page.css"] })).outputFiles[0].text;
const html = readFileSync("src/index.html", "utf8");
const page = (mode, head, scripts) => html.replace("MODE", mode).replace("HEAD", () => head).replace("SCRIPTS", () => scripts);

// Of the first ten formats, and of all.
const [wasm, all] = process.argv.slice(3);
if (wasm) {
  await drop();
  process.exit(0);
}
writeFileSync(join(out, "page.js"), script);
writeFileSync(join(out, "page.css"), style);
writeFileSync(join(out, "icon.svg"), readFileSync("src/icon.svg"));
writeFileSync(
  join(out, "index.html"),
  page("served", '<link rel="icon" href="icon.svg">\n<link rel="stylesheet" href="page.css">', '<script src="page.js"></script>'),
);

/** The page that files are dropped on: as a folder, and as one file that works by double click. */
async function drop() {
  const worker = (await esbuild.build({ ...common, entryPoints: ["src/worker.ts"], format: "iife" })).outputFiles[0].text;
  // A name that no server takes for something that it has packed itself.
  const [code, allCode] = [wasm, all].map((file) => gzipSync(readFileSync(file), { level: 9, memLevel: 9 }));
  const folder = join(out, "drop");
  mkdirSync(folder, { recursive: true });
  const rules = (script_, style_, connect, worker_) =>
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ${script_} 'wasm-unsafe-eval'; style-src ${style_}; connect-src ${connect}; worker-src ${worker_}; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types tenfold">`;
  writeFileSync(join(folder, "page.js"), script);
  writeFileSync(join(folder, "page.css"), style);
  writeFileSync(join(folder, "icon.svg"), readFileSync("src/icon.svg"));
  writeFileSync(join(folder, "worker.js"), worker);
  writeFileSync(join(folder, "tenfold.bin"), code);
  writeFileSync(join(folder, "tenfold-all.bin"), allCode);
  writeFileSync(
    join(folder, "index.html"),
    page("drop", `${rules("'self'", "'self'", "'self'", "'self'")}\n<link rel="icon" href="icon.svg">\n<link rel="stylesheet" href="page.css">`, '<script src="page.js"></script>'),
  );
  const sum = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  // Texts of types that browsers do not run, which the page reads.
  const quiet = (id, text) => `<script type="text/plain" id="${id}">${text}</script>`;
  const inside = script.replaceAll("</script", "<\\/script");
  const workerText = worker.replaceAll("</script", "<\\/script");
  writeFileSync(
    join(out, "tenfold.html"),
    page("drop", `${rules(`${sum(inside)} blob:`, sum(style), "'none'", "blob:")}\n<style>${style}</style>`, `${quiet("worker-source", workerText)}\n${quiet("wasm-source", allCode.toString("base64"))}\n<script>${inside}</script>`),
  );
}
