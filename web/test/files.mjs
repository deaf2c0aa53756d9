// Files for the tests and for the pictures of the documentation: made here, so that every value in them is known.
import { closeSync, ftruncateSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";

/** Random numbers that are the same every time. */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const WIDTH = { F32: 4, BF16: 2, F16: 2, I64: 8, U8: 1, F64: 8 };

/** A file of safetensors; `fill(name)` gives the bytes of each tensor, in the order of the list. */
export function safetensors(path, tensors, metadata, tail = 0) {
  const header = { __metadata__: metadata };
  let at = 0;
  for (const { name, dtype, shape } of tensors) {
    const len = shape.reduce((a, b) => a * b, 1) * WIDTH[dtype];
    header[name] = { dtype, shape, data_offsets: [at, at + len] };
    at += len;
  }
  let text = JSON.stringify(header);
  while ((Buffer.byteLength(text) + 8) % 64) text += " ";
  const head = Buffer.alloc(8);
  head.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
  const file = openSync(path, "w");
  writeSync(file, head);
  writeSync(file, Buffer.from(text));
  const begin = 8 + Buffer.byteLength(text);
  let place = begin;
  for (const { bytes, dtype, shape } of tensors) {
    const len = shape.reduce((a, b) => a * b, 1) * WIDTH[dtype];
    if (bytes) writeSync(file, bytes(), 0, len, place);
    place += len;
  }
  ftruncateSync(file, place);
  if (tail) writeSync(file, Buffer.alloc(tail, 7), 0, tail, place);
  closeSync(file);
  return { begin, end: place };
}

export function f32(count, value) {
  const numbers = new Float32Array(count);
  for (let n = 0; n < count; n += 1) numbers[n] = value(n);
  return Buffer.from(numbers.buffer);
}

export function bf16(count, value) {
  const wide = new Float32Array(1);
  const bits = new Uint32Array(wide.buffer);
  const narrow = new Uint16Array(count);
  for (let n = 0; n < count; n += 1) {
    wide[0] = value(n);
    narrow[n] = (bits[0] + 0x7fff + ((bits[0] >>> 16) & 1)) >>> 16;
  }
  return Buffer.from(narrow.buffer);
}

/** Something like weights: structure, noise, larger in some layers than in others. */
function weights(rows, columns, seed, scale, change = 0) {
  const next = random(seed);
  return (n) => {
    const [row, column] = [Math.floor(n / columns), n % columns];
    const waves = Math.sin((row * 5.1) / rows + seed) * Math.cos((column * 9.7) / columns + seed * 0.7) + 0.4 * Math.sin((row * column * 14) / (rows * columns));
    const noise = next() + next() + next() - 1.5;
    const changed = change && row > rows / 2 ? change * Math.sin((column * 21) / columns) : 0;
    return scale * (0.9 * waves + 0.8 * noise + changed);
  };
}

const LAYERS = 16;

/** A small model; `tuned` differs from it in the middle layers. */
export function model(path, tuned = false) {
  const tensors = [];
  const add = (name, dtype, shape, value) => {
    const count = shape.reduce((a, b) => a * b, 1);
    tensors.push({ name, dtype, shape, bytes: () => (dtype === "F32" ? f32(count, value) : bf16(count, value)) });
  };
  add("model.embed.weight", "F32", [2048, 512], (() => {
    const value = weights(2048, 512, 1, 0.05);
    return (n) => {
      const number = value(n);
      return Math.floor(n / 512) >= 1100 && Math.floor(n / 512) < 1106 && n % 512 > 180 && n % 512 < 330 && !tuned ? NaN : number;
    };
  })());
  for (let layer = 0; layer < LAYERS; layer += 1) {
    const scale = 0.02 * (1.2 + Math.sin(layer / 2.3));
    const change = tuned && layer > 5 && layer < 14 ? 0.5 * Math.sin(((layer - 5) / 9) * Math.PI) : 0;
    const own = `model.layers.${layer}`;
    ["q_proj", "k_proj", "v_proj", "o_proj"].forEach((name, n) => add(`${own}.self_attn.${name}.weight`, "BF16", [256, 512], weights(256, 512, layer * 7 + n, scale, change * (n === 0 ? 1 : n === 3 ? 0.2 : 0.5))));
    ["gate_proj", "up_proj", "down_proj"].forEach((name, n) => add(`${own}.mlp.${name}.weight`, "BF16", name === "down_proj" ? [512, 1376] : [1376, 512], weights(name === "down_proj" ? 512 : 1376, name === "down_proj" ? 1376 : 512, layer * 7 + n + 4, scale, layer > 8 ? change * 0.3 : 0)));
    add(`${own}.input_layernorm.weight`, "BF16", [512], (n) => 1 + 0.1 * Math.sin(n / 30 + layer));
    add(`${own}.post_attention_layernorm.weight`, "BF16", [512], (n) => 1 + 0.1 * Math.cos(n / 30 + layer));
  }
  add("model.norm.weight", "BF16", [512], () => 1);
  add("vision.conv.weight", "F32", [32, 3, 8, 8], (n) => Math.sin(n / 11) * 0.1);
  if (!tuned) add("rotary.inv_freq", "F32", [32], (n) => 10000 ** (-n / 32));
  else add("rope_freqs.weight", "F32", [32], (n) => 10000 ** (-n / 32));
  safetensors(path, tensors, { "general.name": tuned ? "tuned" : "base", format: "pt", license: "apache-2.0", "training.steps": tuned ? "12000" : "0", notes: "A model of the tests: every value is computed." });
}

/** A model in a folder, in two shards whose names every such model has; all of its numbers are one. */
export function sharded(folder, number) {
  mkdirSync(folder, { recursive: true });
  const map = {};
  for (const shard of [1, 2]) {
    const file = `model-0000${shard}-of-00002.safetensors`;
    const names = [`layers.${shard - 1}.w`, `layers.${shard + 1}.w`];
    safetensors(`${folder}/${file}`, names.map((name) => ({ name, dtype: "F32", shape: [4, 4], bytes: () => f32(16, () => number) })), { format: "pt" });
    for (const name of names) map[name] = file;
  }
  writeFileSync(`${folder}/model.safetensors.index.json`, JSON.stringify({ metadata: { total_size: 256 }, weight_map: map }));
  writeFileSync(`${folder}/config.json`, "{}");
}

/** Two stacks of layers with the same numbers, as an encoder and a decoder are; `tuned` differs in the decoder's last layer. */
export function stacks(path, tuned) {
  const tensors = ["encoder", "decoder"].flatMap((stack) => [0, 1, 2].map((layer) => ({
    name: `${stack}.layers.${layer}.w`, dtype: "F32", shape: [2, 4, 4], bytes: () => f32(32, (n) => n + (tuned && stack === "decoder" && layer === 2 && n === 20 ? 5 : 0)),
  })));
  tensors.push({ name: "odd", dtype: "F32", shape: [2, 2], bytes: () => f32(4, (n) => (n === 1 && !tuned ? NaN : n)) });
  safetensors(path, tensors, {});
}

/** Names that a tree of a level for each segment would end a browser with, and one that begins with a mark of byte order. */
export function odd(path) {
  const one = (name) => ({ name, dtype: "F32", shape: [2], bytes: () => f32(2, (n) => n) });
  safetensors(path, [one(`${".".repeat(200000)}deep`), one("\ufeffmarked"), one("marked")], { long: "x".repeat(5000) });
}

/** A matrix of which a part is read at first: 64 MiB. */
export function wide(path) {
  safetensors(path, [{ name: "model.embed_tokens.weight", dtype: "F32", shape: [8192, 2048], bytes: () => f32(8192 * 2048, weights(8192, 2048, 3, 0.04)) }], {});
}

/** A long vector, and a matrix of few long rows. */
export function long(path) {
  safetensors(path, [
    { name: "vector", dtype: "F32", shape: [100000], bytes: () => f32(100000, (n) => n) },
    { name: "rows", dtype: "F32", shape: [4, 8 << 20], bytes: null },
  ], {});
}

/** Names of a hundred thousand small tensors. */
export function many(path, count) {
  const tensors = [];
  for (let n = 0; n < count; n += 1) {
    tensors.push({ name: `model.layers.${Math.floor(n / 100)}.experts.${Math.floor(n / 10) % 10}.part${n % 10}.weight`, dtype: "F32", shape: [1], bytes: null });
  }
  safetensors(path, tensors, { many: String(count) });
}

/** A million of them, with short names: headers of safetensors end at 100 MB. */
export function million(path) {
  const tensors = [];
  for (let n = 0; n < 1000000; n += 1) tensors.push({ name: `l${Math.floor(n / 100)}.e${Math.floor(n / 10) % 10}.p${n % 10}`, dtype: "F32", shape: [1], bytes: null });
  safetensors(path, tensors, {});
}

/** A matrix of more than 3 GiB, nearly all of it a hole. */
export function sparse(path) {
  return safetensors(path, [{ name: "hole", dtype: "F32", shape: [28672, 28672], bytes: null }, { name: "end", dtype: "F32", shape: [2, 2], bytes: () => f32(4, (n) => n + 1) }], {});
}

export const HOSTILE = "<img src=x onerror=\"document.title='owned'\">";

/** Names that would be markup, turn text around, or are very long. */
export function hostile(path) {
  const one = (name, n) => ({ name, dtype: "F32", shape: [4], bytes: () => f32(4, (x) => x + n) });
  safetensors(path, [one(HOSTILE, 0), one(`${HOSTILE}.weight`, 1), one("\u202etxt.exe\u0000\n", 2), one("x".repeat(100000), 3)], { [HOSTILE]: HOSTILE, script: "<script>document.title='owned'</script>" });
}

/** A small matrix whose every pixel is known. */
export function exact(path) {
  safetensors(path, [
    { name: "signed", dtype: "F32", shape: [4, 8], bytes: () => f32(32, (n) => (n === 13 ? NaN : n === 22 ? Infinity : n - 16)) },
    { name: "steps", dtype: "F32", shape: [6, 6], bytes: () => f32(36, (n) => n) },
    { name: "cube", dtype: "F32", shape: [3, 4, 5], bytes: () => f32(60, (n) => n) },
    { name: "vector", dtype: "F32", shape: [500], bytes: () => f32(500, (n) => Math.sin(n / 20)) },
    { name: "scalar", dtype: "F32", shape: [], bytes: () => f32(1, () => 42) },
    { name: "nothing", dtype: "F32", shape: [0, 3], bytes: null },
  ], {});
}

if (process.argv[1]?.endsWith("files.mjs") && process.argv[2]) {
  const folder = process.argv[2];
  model(`${folder}/base.safetensors`);
  model(`${folder}/tuned.safetensors`, true);
  exact(`${folder}/exact.safetensors`);
  hostile(`${folder}/hostile.safetensors`);
  many(`${folder}/many.safetensors`, 100000);
  sparse(`${folder}/sparse.safetensors`);
  wide(`${folder}/wide.safetensors`);
  writeFileSync(`${folder}/broken.safetensors`, Buffer.from([255, 0, 0, 0, 0, 0, 0, 0, 123]));
}
