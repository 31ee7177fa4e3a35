// The room around boxes: how far a name may reach beyond its box before it meets another's.

export interface Room {
  readonly left: number;
  readonly right: number;
  readonly above: number;
  readonly below: number;
}

interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

// No name needs more on one side.
const FAR = 120;

/** Half of what lies between each box and the next on each side: two names may meet in the middle. */
export function roomsOf<Box extends Rectangle>(boxes: readonly Box[]): ReadonlyMap<Box, Room> {
  const beside = nearest(boxes, ({ x, y, width, height }) => [x, x + width, y, y + height]);
  const over = nearest(boxes, ({ x, y, width, height }) => [y, y + height, x, x + width]);
  return new Map(
    boxes.map((box, i) => {
      const [[left, right], [above, below]] = [beside[i], over[i]];
      return [box, { left, right, above, below }];
    }),
  );
}

/**
 * Half the distance from each box to the next before and after it, along one axis.
 *
 * @param span where a box begins and ends along the axis, and across it.
 */
function nearest<Box>(
  boxes: readonly Box[],
  span: (box: Box) => readonly [number, number, number, number],
): [number, number][] {
  const spans = boxes.map(span);
  const found = boxes.map((): [number, number] => [FAR, FAR]);
  const order = spans.map((_, i) => i).sort((a, b) => spans[a][0] - spans[b][0] || a - b);
  order.forEach((i, place) => {
    const [, end, low, high] = spans[i];
    for (let next = place + 1; next < order.length; next++) {
      const j = order[next];
      const half = (spans[j][0] - end) / 2;
      if (half >= FAR) break;
      if (half < 0 || spans[j][2] >= high || spans[j][3] <= low) continue;
      found[i][1] = Math.min(found[i][1], half);
      found[j][0] = Math.min(found[j][0], half);
    }
  });
  return found;
}
