// Elements. Text is always text: nothing here takes markup.

type Child = Node | string | number | null | undefined | false;
type Props = Record<string, unknown>;

/** Makes an element: `class`, `on…` handlers, `data-…` and `aria-…` attributes, and properties. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props | null = null,
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2), value as EventListener);
    } else if (name === "class") {
      element.className = String(value);
    } else if (name in element && !name.startsWith("aria") && name !== "role" && name !== "list") {
      (element as unknown as Props)[name] = value;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  put(element, ...children);
  return element;
}

export function put(parent: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(typeof child === "number" ? String(child) : child);
  }
}

/** Replaces everything in an element. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  put(parent, ...children);
}

export function button(label: string, act: () => void, props: Props = {}): HTMLButtonElement {
  return h("button", { type: "button", onclick: act, ...props }, label);
}

/** A choice with a label that screen readers know. */
export function select(
  label: string,
  choices: [string, string][],
  chosen: string,
  act: (value: string) => void,
): HTMLSelectElement {
  const made = h("select", {
    "aria-label": label,
    title: label,
    onchange: () => act(made.value),
  });
  for (const [value, text] of choices) {
    made.append(h("option", { value, selected: value === chosen }, text));
  }
  return made;
}

export function check(label: string, value: boolean, act: (value: boolean) => void): HTMLLabelElement {
  const box = h("input", { type: "checkbox", checked: value, onchange: () => act(box.checked) });
  return h("label", { class: "check" }, box, label);
}

/** A canvas of so many CSS pixels, with as many device pixels as the screen has for them. */
export function canvas(wide: number, high: number, label: string): [HTMLCanvasElement, CanvasRenderingContext2D] {
  const ratio = window.devicePixelRatio || 1;
  const made = h("canvas", { role: "img", "aria-label": label });
  made.width = Math.max(1, Math.round(wide * ratio));
  made.height = Math.max(1, Math.round(high * ratio));
  made.style.width = `${made.width / ratio}px`;
  made.style.height = `${made.height / ratio}px`;
  return [made, made.getContext("2d", { willReadFrequently: true })!];
}

let spoken = 0;
let waiting: number | undefined;

/** Says something to those who do not see it, at most once a second. */
export function say(text: string): void {
  const region = document.getElementById("live");
  if (!region) return;
  clearTimeout(waiting);
  const wait = Math.max(0, spoken + 1000 - Date.now());
  waiting = window.setTimeout(() => {
    spoken = Date.now();
    region.textContent = text;
  }, wait);
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    note("copied");
  } catch {
    note("the browser does not let pages copy here");
  }
}

/** A short note in the corner. */
export function note(text: string): void {
  const place = document.getElementById("note");
  if (!place) return;
  place.textContent = text;
  place.hidden = false;
  say(text);
  window.setTimeout(() => {
    if (place.textContent === text) place.hidden = true;
  }, 2500);
}

/** Words, of which those between backticks are typed. */
export function marked(text: string): (string | HTMLElement)[] {
  return text.split("`").map((part, n) => (n % 2 ? h("code", null, part) : part));
}

/** A colour of the style sheet. */
export function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function save(name: string, parts: BlobPart[], type: string): void {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const link = h("a", { href: address, download: name });
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(address), 10000);
}
