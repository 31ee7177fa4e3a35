// What JupyterLab loads: a container in the sense of module federation, which holds our plugins.
//
// JupyterLab hands over the packages that its extensions share, and asks for the module whose name
// `package.json` gives. That is all there is to it, so that it needs no bundler of its own.

import { Packages, Plugin } from "./jupyterlab.js";
import { plugins } from "./plugins.js";

/** The versions of each package, with what loads it. */
type Shared = Record<string, Record<string, { get(): Promise<() => unknown> }>>;

interface Container {
  init(shared: Shared): void;
  get(module: string): Promise<() => { __esModule: true; default: Plugin[] }>;
}

declare global {
  var _JUPYTERLAB: Record<string, Container> | undefined;
}

let shared: Shared = {};

/** A package that the page shares; there is one version of each that is asked for here. */
async function load<Name extends keyof Packages>(name: Name): Promise<Packages[Name]> {
  const [version] = Object.values(shared[name]);
  return (await version.get())() as Packages[Name];
}

(globalThis._JUPYTERLAB ??= {})["flowbook"] = {
  init(given) {
    shared = given;
  },
  async get() {
    const made = await plugins(load);
    return () => ({ __esModule: true, default: made });
  },
};
