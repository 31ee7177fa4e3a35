// A value that was fetched: its statistics, its histogram, its pictures, or itself.

import { fullHeight } from "../core/spikes.js";
import { byteSize, shownText } from "../core/words.js";
import { element } from "./dom.js";
import { Answer, Histogram } from "./kernel_link.js";

const [WIDTH, HEIGHT] = [260, 56];
const [SLIT_AT, SLIT] = [8, 3]; // Where a bar that is cut is open, and how wide.
const SVG = "http://www.w3.org/2000/svg";

export function valueView({ value, pictures }: Answer): HTMLElement {
  const root = element("div", { class: "fb-value" });
  root.append(element("p", {}, `${value.dtype} [${value.shape.join(", ")}] · ${byteSize(value.bytes)}`));
  if (value.text !== undefined) root.append(element("pre", {}, lines(value.text)));
  if (pictures.length > 0) root.append(gallery(pictures, value.pictures ?? [], value.scale));
  if (value.histogram) root.append(histogram(value.histogram));
  if (value.statistics) {
    const rows = value.statistics.map(([word, number]) => element("div", {}, element("dt", {}, word), element("dd", {}, number)));
    root.append(element("dl", {}, ...rows));
  }
  const fed = value.fed.length > 0 ? `, fed as in its last run: ${value.fed.join(", ")}` : "";
  root.append(element("p", { class: "fb-detail" }, shownText(`by the session of ${value.session}${fed}`)));
  return root;
}

/** Text that may have several lines. */
function lines(text: string): string {
  return text.split("\n").map(shownText).join("\n");
}

function gallery(
  pictures: readonly Blob[],
  sizes: readonly (readonly [number, number])[],
  scale: readonly [string, string] | undefined,
): HTMLElement {
  const images = pictures.map((picture, i) => {
    const [width, height] = sizes[i] ?? [1, 1];
    const url = URL.createObjectURL(picture);
    const forget = (): void => URL.revokeObjectURL(url);
    return element("img", { src: url, alt: `picture ${i + 1}, ${width} × ${height}`, load: forget, error: forget });
  });
  const words = scale ? `black ${scale[0]}, white ${scale[1]}` : "";
  const columns = images.length > 1 ? "fb-two" : "fb-one";
  return element("figure", { class: columns }, ...images, element("figcaption", {}, words));
}

function histogram({ edges, counts, of }: Histogram): HTMLElement {
  const most = fullHeight([counts]) || 1;
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `histogram of the ${of}, from ${short(edges[0])} to ${short(edges[edges.length - 1])}`);
  const each = WIDTH / counts.length;
  counts.forEach((count, i) => {
    const bar = document.createElementNS(SVG, "path");
    // What there is at all is to be seen.
    const height = count > 0 ? Math.min(HEIGHT, Math.max(1, (HEIGHT * count) / most)) : 0;
    const width = Math.max(0.5, Math.min(each - Math.min(1, each / 4), 40));
    const left = (i * each + (each - width) / 2).toFixed(2);
    const piece = (top: number, tall: number): string => `M${left} ${top.toFixed(2)}h${width.toFixed(2)}v${tall.toFixed(2)}h${(-width).toFixed(2)}z`;
    const isCut = count > most;
    const foot = isCut ? SLIT_AT + SLIT : HEIGHT - height;
    bar.setAttribute("d", (isCut ? piece(0, SLIT_AT) : "") + piece(foot, HEIGHT - foot));
    const title = document.createElementNS(SVG, "title");
    title.textContent = `${short(edges[i])} to ${short(edges[i + 1])}: ${count.toLocaleString("en-US")}`;
    bar.append(title);
    svg.append(bar);
  });
  const ends = element(
    "figcaption",
    { class: "fb-ends" },
    element("span", {}, short(edges[0])),
    element("span", {}, of),
    element("span", {}, short(edges[edges.length - 1])),
  );
  return element("figure", {}, svg, ends);
}

function short(number: number): string {
  return String(Number(number.toPrecision(4)));
}
