// Builds the one bundle that notebooks run, into the Python package; prints its size.
//
// The layout runs in a worker made from text, so that nothing is fetched: it is bundled first, and
// its text becomes a constant of the bundle.

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const OUT = new URL("../flowbook/widgets/static/", import.meta.url);
const COMMON = { bundle: true, format: "esm", minify: true, target: "es2022", write: false, legalComments: "none" };

async function bundle(entry, plugins = []) {
  const result = await build({ ...COMMON, entryPoints: [entry], plugins, logLevel: "warning" });
  return result.outputFiles[0].text;
}

const worker = await bundle("src/widgets/layout_worker.ts");

const workerText = {
  name: "worker-text",
  setup(builder) {
    builder.onResolve({ filter: /^worker-text:layout$/ }, () => ({ path: "layout", namespace: "worker-text" }));
    builder.onLoad({ filter: /.*/, namespace: "worker-text" }, () => ({ contents: worker, loader: "text" }));
  },
};

const text = await bundle("src/widgets/index.ts", [workerText]);
await mkdir(OUT, { recursive: true });
await writeFile(new URL("flowbook.js", OUT), text);
// What the bundle contains of others asks that its licence goes with it.
const licences = ["@dagrejs/dagre", "@dagrejs/graphlib", "uplot"].map(async (name) => {
  const path = new URL(`node_modules/${name}/LICENSE`, import.meta.url);
  return `${name}\n\n${await readFile(path, "utf8")}`;
});
await writeFile(new URL("LICENSES.txt", OUT), (await Promise.all(licences)).join("\n\n"));
const sizes = [text.length, gzipSync(text).length].map((bytes) => `${(bytes / 1024).toFixed(1)} kB`);
console.log(`flowbook.js: ${sizes[0]}, ${sizes[1]} compressed`);
