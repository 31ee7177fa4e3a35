// Tags by their prefixes, and those that a person asks for.

export interface TagGroup {
  /** What the tags have before their first "/"; empty for those without. */
  readonly prefix: string;
  readonly tags: readonly string[];
}

/** The tags by prefix, in the order in which they are read: numbers by their size. */
export function grouped(tags: Iterable<string>): TagGroup[] {
  const groups = new Map<string, string[]>();
  for (const tag of new Set(tags)) {
    const prefix = prefixOf(tag);
    const known = groups.get(prefix);
    if (known) known.push(tag);
    else groups.set(prefix, [tag]);
  }
  const order = new Intl.Collator("en", { numeric: true }).compare;
  return [...groups]
    .map(([prefix, members]) => ({ prefix, tags: members.sort(order) }))
    .sort((a, b) => order(a.prefix, b.prefix));
}

function prefixOf(tag: string): string {
  const at = tag.indexOf("/");
  return at > 0 ? tag.slice(0, at) : "";
}

/** A tag as it stands in its group. */
export function shortOf(tag: string): string {
  const prefix = prefixOf(tag);
  return prefix ? tag.slice(prefix.length + 1) : tag;
}

/** What tells whether a tag is asked for: a regular expression, or plain text where it is none. */
export function filterOf(query: string): (tag: string) => boolean {
  const text = query.trim();
  if (!text) return () => true;
  const lower = text.toLowerCase();
  let pattern: RegExp | null = null;
  try {
    pattern = new RegExp(text, "i");
  } catch {
    // It is text, then.
  }
  return (tag) => tag.toLowerCase().includes(lower) || (pattern?.test(tag) ?? false);
}
