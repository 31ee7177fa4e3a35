// Tags that say the same of several parts of the data, as `loss` and `held_out/loss`: one chart has them.
//
// `flowbook/widgets/summaries/splits.py` does the same for static pictures.

/** What parts of the data are called, in the order in which their curves are drawn. */
const SPLITS = ["train", "training", "val", "valid", "validation", "dev", "eval", "evaluation", "heldout", "test"];

export interface ChartTag {
  /** What the chart is of: the tag, or what is behind the part of the data. */
  readonly title: string;
  /** The part of the data; empty where the tag stands alone. */
  readonly split: string;
}

/** For each tag with curves the chart that it is in. */
export function chartsOf(tags: Iterable<string>): Map<string, ChartTag> {
  const found = new Map<string, ChartTag>();
  const splits = new Map<string, number>();
  for (const tag of new Set(tags)) {
    const at = tag.indexOf("/");
    const isSplit = SPLITS.includes(plain(tag.slice(0, Math.max(0, at))));
    const title = isSplit ? tag.slice(at + 1) : tag;
    found.set(tag, { title, split: isSplit ? tag.slice(0, at) : "" });
    splits.set(title, (splits.get(title) ?? 0) + 1);
  }
  // One alone is what it is called.
  for (const [tag, { title }] of found) if (splits.get(title)! < 2) found.set(tag, { title: tag, split: "" });
  return found;
}

/** Parts of the data in the order in which they are drawn; what is of none comes first. */
export function inOrder(splits: Iterable<string>): string[] {
  const place = (split: string): number => SPLITS.indexOf(plain(split));
  return [...new Set(splits)].sort((a, b) => place(a) - place(b));
}

function plain(split: string): string {
  return split.replace(/[\s_-]/g, "").toLowerCase();
}
