// Where the bytes are: areas in the proportion of what is stored, by the segments of names.

import { type Node, children } from "./tree.js";

export interface Area {
  node: Node;
  x: number;
  y: number;
  w: number;
  h: number;
  depth: number;
}

/** Squarified: areas as near to squares as they can be, the largest first. */
export function squarify(nodes: Node[], x: number, y: number, w: number, h: number, depth = 0): Area[] {
  const sorted = nodes.filter((node) => node.stored > 0).sort((a, b) => b.stored - a.stored);
  const total = sorted.reduce((sum, node) => sum + node.stored, 0);
  const areas: Area[] = [];
  let left = total;
  let at = 0;
  while (at < sorted.length && w > 0 && h > 0) {
    const side = Math.min(w, h);
    const scale = (w * h) / left;
    let end = at + 1;
    let sum = sorted[at].stored;
    let worst = Infinity;
    for (;;) {
      const thick = (sum * scale) / side;
      const long = (sorted[at].stored * scale) / thick;
      const least = (sorted[end - 1].stored * scale) / thick;
      const ratio = Math.max(long / thick, thick / Math.max(1e-9, least));
      if (ratio > worst) {
        end -= 1;
        sum -= sorted[end].stored;
        break;
      }
      worst = ratio;
      if (end >= sorted.length) break;
      sum += sorted[end].stored;
      end += 1;
    }
    const thick = (sum * scale) / side;
    let along = 0;
    for (const node of sorted.slice(at, end)) {
      const long = (node.stored * scale) / thick;
      areas.push(w >= h ? { node, x, y: y + along, w: thick, h: long, depth } : { node, x: x + along, y, w: long, h: thick, depth });
      along += long;
    }
    if (w >= h) [x, w] = [x + thick, w - thick];
    else [y, h] = [y + thick, h - thick];
    left -= sum;
    at = end;
  }
  return areas;
}

/** Instead of a part that is nearly everything, what is in it: a choice of one is none. */
function spread(nodes: Node[]): Node[] {
  let found = nodes;
  for (let level = 0; level < 4; level += 1) {
    const total = found.reduce((sum, node) => sum + node.stored, 0);
    const large = found.find((node) => node.stored > total * 0.6 && children(node).length > 0);
    if (!large) break;
    const inner = children(large).map((child) => ({ ...child, label: /^\d+$/.test(child.label) ? `${large.label}.${child.label}` : child.label }));
    found = [...found.filter((node) => node !== large), ...inner];
  }
  return found;
}

/** The areas below a node, two levels deep where there is room. */
export function areas(node: Node, w: number, h: number): Area[] {
  const found: Area[] = [];
  const nodes = spread(children(node));
  for (const area of squarify(nodes.length ? nodes : [node], 0, 0, w, h)) {
    const inner = children(area.node);
    found.push(area);
    if (inner.length > 1 && area.w > 60 && area.h > 44) {
      found.push(...squarify(inner, area.x + 2, area.y + 18, area.w - 4, area.h - 20, 1));
    }
  }
  return found;
}
