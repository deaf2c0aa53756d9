// All keys.

import { button, h } from "./dom.js";

const KEYS: [string, string][] = [
  ["1 – 6", "Overview, Tensors, Bytes, Metadata, Compare, Checks"],
  ["/", "filter tensors: mlp & size>1MiB & dtype:bf16 & nan"],
  ["↑ ↓ ← →", "move in the tree, in a picture, among bytes"],
  ["Enter", "open; in the treemap go in, Backspace out"],
  ["t  s", "tree or flat list; next order"],
  ["g v h b c", "heat map, values, histogram, bytes, code"],
  ["+ − 0", "zoom in, out, whole"],
  ["Shift ↑ ↓ ← →", "move the part that a picture shows"],
  ["[ ]", "one back, one on along the last of the other dimensions"],
  ["x", "exchange rows and columns"],
  ["n N", "next and previous NaN or infinity"],
  ["y", "copy the name"],
  ["Esc", "back"],
];

export function help(): void {
  const dialog = h("dialog", { class: "help", "aria-label": "keys" }, h("h2", null, "Keys"),
    h("table", null, h("tbody", null, ...KEYS.map(([key, what]) => h("tr", null, h("th", { scope: "row", class: "mono" }, key), h("td", null, what))))),
    h("p", { class: "dim" }, "Paste a name to go to the tensor. Links keep the tensor, the slice, the view and the colours."));
  dialog.append(button("close", () => dialog.close()));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
