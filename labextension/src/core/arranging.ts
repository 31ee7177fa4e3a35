// How the picture of a tree comes about: each opened scope is laid out by itself, the inner ones
// first; at first a picture lies on its side where that fits better.
//
// These ask for layouts and leave it to others to make them: in a page a worker does, elsewhere they
// are made at once. Neither knows how large a page is: the picture is the same everywhere.

import { isOpenable } from "./faces.js";
import { Hierarchy } from "./hierarchy.js";
import { Layout, LayoutRequest } from "./layout.js";
import { Choices, EdgeCache, Prepared, Scene, compose, prepare } from "./scene.js";

/** Yields requests, takes their layouts, and gives what is made of them. */
export type Arranging<Made> = Generator<LayoutRequest, Made, Layout>;

export const LEGIBLE = 0.72; // The scale at which names are still read with ease.
const [ROOM_WIDTH, ROOM_HEIGHT] = [820, 540]; // What a page has for a picture, about.
const MUCH_LARGER = 2;
const MOST_TURNED = 40; // More boxes would not be legible on their side: they are not laid out twice.

/** The picture of a tree. */
export function* arranging(tree: Hierarchy, edges: EdgeCache, choices: Choices): Arranging<Scene> {
  const prepared = new Map<number, Prepared>();
  const layouts = new Map<number, Layout>();
  function* arrange(scope: number): Arranging<void> {
    for (const child of tree.members(scope)) if (choices.opened.has(child)) yield* arrange(child);
    const ready = prepare(edges, scope, choices, layouts);
    prepared.set(scope, ready);
    layouts.set(scope, yield ready.request);
  }
  yield* arrange(tree.root);
  return compose(tree, prepared, layouts, choices);
}

/**
 * A first picture, of edges that run down; or on its side where that fits a page as well, since pages
 * are wide and end below, and where it is much larger so.
 */
export function* arrangingFirst(
  tree: Hierarchy,
  edges: EdgeCache,
  choices: Choices,
): Arranging<{ scene: Scene; sideways: boolean }> {
  const scene = yield* arranging(tree, edges, choices);
  if (scene.boxes.size > MOST_TURNED) return { scene, sideways: false };
  const lying = yield* arranging(tree, edges, { ...choices, sideways: true });
  const [scale, other] = [fitting(lying), fitting(scene)];
  const fits = scale >= Math.max(LEGIBLE, other) && lying.height * scale <= scene.height * other;
  return fits || scale >= MUCH_LARGER * other ? { scene: lying, sideways: true } : { scene, sideways: false };
}

/** What is opened at first: one scope alone says nothing, what is in it does. */
export function openedFirst(tree: Hierarchy): Set<number> {
  const opened = new Set<number>();
  let members = tree.members(tree.root);
  while (members.length === 1 && isOpenable(tree, members[0])) {
    opened.add(members[0]);
    members = tree.members(members[0]);
  }
  return opened;
}

/** At which scale all of a picture is seen. */
function fitting(scene: Scene): number {
  return Math.min(1, ROOM_WIDTH / scene.width, ROOM_HEIGHT / scene.height);
}
