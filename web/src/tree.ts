// Names as a tree of their segments. Like children, as layers are, are one row until somebody opens it.

import type { Archive } from "./table.js";

export interface Node {
  /** What is shown: one segment, or several where there is no choice between them. */
  label: string;
  path: string;
  tensor: number;
  count: number;
  stored: number;
  /** The common type, or -1. */
  dtype: number;
  children: Map<string, Node> | null;
  /** How many children are numbered alike; 0 where they are not. */
  like: number;
}

export interface Row {
  node: Node;
  depth: number;
}

/** Segments of a name that make a level each; the rest of a longer one is one. */
const DEEPEST = 64;

function isSeparator(code: number): boolean {
  return code === 46 || code === 47;
}

export function tree(archive: Archive, tensors: Iterable<number>): Node {
  const root = made("", "");
  const names = archive.names;
  for (const t of tensors) {
    let node = root;
    let from = 0;
    let depth = 0;
    const name = names[t];
    count(node, archive, t);
    while (from <= name.length) {
      let to = from;
      depth += 1;
      if (depth === DEEPEST) to = name.length;
      while (to < name.length && !isSeparator(name.charCodeAt(to))) to += 1;
      const segment = name.slice(from, to);
      if (!node.children) node.children = new Map();
      let next = node.children.get(segment);
      if (!next) {
        next = made(segment, name.slice(0, to));
        node.children.set(segment, next);
      }
      node = next;
      count(node, archive, t);
      from = to + 1;
    }
    // Names may be equal in damaged files; the last one is listed.
    node.tensor = t;
  }
  return root;
}

function made(label: string, path: string): Node {
  return { label, path, tensor: -1, count: 0, stored: 0, dtype: -2, children: null, like: 0 };
}

function count(node: Node, archive: Archive, t: number): void {
  node.count += 1;
  node.stored += archive.stored[t];
  const dtype = archive.dtype[t];
  node.dtype = node.dtype === -2 || node.dtype === dtype ? dtype : -1;
}

/** The children in natural order, with chains of single children joined. */
export function children(node: Node): Node[] {
  if (!node.children) return [];
  const found = [...node.children.values()].map(joined);
  found.sort(natural);
  return found;
}

function joined(node: Node): Node {
  let end = node;
  let label = node.label;
  while (end.tensor < 0 && end.children?.size === 1) {
    const [next] = end.children.values();
    // A layer keeps a row of its own.
    if (/^\d+$/.test(next.label)) break;
    label += next.path.charAt(next.path.length - next.label.length - 1) + next.label;
    end = next;
  }
  return mark(end === node ? node : { ...end, label });
}

function mark(node: Node): Node {
  if (node.children && node.children.size > 1 && [...node.children.keys()].every((key) => /^\d+$/.test(key))) {
    return { ...node, like: node.children.size };
  }
  return node;
}

export function natural(a: Node, b: Node): number {
  return compare(a.label, b.label);
}

const collator = new Intl.Collator("en", { numeric: true });

export function compare(a: string, b: string): number {
  return collator.compare(a, b);
}

/** The rows that are seen: children of what is open. */
export function rows(root: Node, open: Set<string>): Row[] {
  const found: Row[] = [];
  const walk = (node: Node, depth: number): void => {
    for (const child of children(node)) {
      found.push({ node: child, depth });
      if (child.children && open.has(child.path)) walk(child, depth + 1);
    }
  };
  walk(root, 0);
  return found;
}
