// Builds the bundle that notebooks run and the one that Python runs, which draws the pictures beside
// live views, into the Python package, and JupyterLab's extension, which the wheel has beside it;
// prints their sizes.
//
// In a page the layout runs in a worker made from text, so that nothing is fetched: it is bundled
// first, and its text becomes a constant of the bundle.

import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const OUT = new URL("../flowbook/widgets/static/", import.meta.url);
const EXTENSION = new URL("prebuilt/", import.meta.url);
const COMMON = { bundle: true, minify: true, target: "es2022", write: false, legalComments: "none" };

async function bundle(entry, options = {}) {
  const result = await build({ ...COMMON, entryPoints: [entry], format: "esm", logLevel: "warning", ...options });
  return result.outputFiles[0].text;
}

function say(name, text) {
  const sizes = [text.length, gzipSync(text).length].map((bytes) => `${(bytes / 1024).toFixed(1)} kB`);
  console.log(`${name}: ${sizes[0]}, ${sizes[1]} compressed`);
}

const worker = await bundle("src/widgets/layout_worker.ts");

const workerText = {
  name: "worker-text",
  setup(builder) {
    builder.onResolve({ filter: /^worker-text:layout$/ }, () => ({ path: "layout", namespace: "worker-text" }));
    builder.onLoad({ filter: /.*/, namespace: "worker-text" }, () => ({ contents: worker, loader: "text" }));
  },
};

const text = await bundle("src/widgets/index.ts", { plugins: [workerText] });
const picture = await bundle("src/core/picture.ts", { format: "iife", globalName: "flowbook" });
await mkdir(OUT, { recursive: true });
await writeFile(new URL("flowbook.js", OUT), text);
await writeFile(new URL("picture.js", OUT), picture);
// What the bundles contain of others asks that its licence goes with them.
const licences = ["@dagrejs/dagre", "@dagrejs/graphlib", "uplot"].map(async (name) => {
  const path = new URL(`node_modules/${name}/LICENSE`, import.meta.url);
  return `${name}\n\n${await readFile(path, "utf8")}`;
});
await writeFile(new URL("LICENSES.txt", OUT), (await Promise.all(licences)).join("\n\n"));
say("flowbook.js", text);
say("picture.js", picture);

const extension = await bundle("src/lab/container.ts", { format: "iife" });
// Pages may keep what they loaded under a name: other code has another one.
const load = `static/remoteEntry.${createHash("sha256").update(extension).digest("hex").slice(0, 16)}.js`;
const { version, license } = JSON.parse(await readFile(new URL("package.json", import.meta.url), "utf8"));
const description = "Shows Flowbook's views: live, or as pictures where there is no kernel";
const described = { name: "flowbook", version, license, description };
const metadata = { ...described, jupyterlab: { extension: true, _build: { load, extension: "./extension" } } };
const uninstallInstructions = "Use your Python package manager to uninstall the package flowbook.";
const origin = { packageManager: "python", packageName: "flowbook", uninstallInstructions };
await rm(EXTENSION, { recursive: true, force: true });
await mkdir(new URL("static/", EXTENSION), { recursive: true });
await writeFile(new URL("package.json", EXTENSION), JSON.stringify(metadata, null, 2));
await writeFile(new URL("install.json", EXTENSION), JSON.stringify(origin, null, 2));
await writeFile(new URL(load, EXTENSION), extension);
say("JupyterLab's extension", extension);
