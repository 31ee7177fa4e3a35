import assert from "node:assert/strict";
import { test } from "node:test";

import { roomsOf } from "../src/core/rooms.js";

const box = (x: number, y: number) => ({ x, y, width: 20, height: 10 });

test("names may reach half of the way to the next box", () => {
  const [a, b, c, far] = [box(0, 0), box(40, 5), box(0, 30), box(1000, 0)];
  const rooms = roomsOf([a, b, c, far]);
  assert.deepEqual(rooms.get(a), { left: 120, right: 10, above: 120, below: 10 });
  assert.deepEqual(rooms.get(b), { left: 10, right: 120, above: 120, below: 120 });
  assert.deepEqual(rooms.get(c), { left: 120, right: 120, above: 10, below: 120 });
  assert.deepEqual(rooms.get(far), { left: 120, right: 120, above: 120, below: 120 });
});

test("a nearer box that begins later counts, one in another row does not", () => {
  const wide = { x: 0, y: 0, width: 100, height: 10 };
  const [under, next] = [box(50, 12), box(130, 0)];
  assert.equal(roomsOf([next, under, wide]).get(wide)!.right, 15);
});
