// The plugins: every notebook and every console gets a renderer of Flowbook's views.

import { ConsolePanel, NotebookPanel, Packages, Place, Plugin, Tracker } from "./jupyterlab.js";
import { LIVE_VIEW, viewRenderer } from "./view_renderer.js";

// Before all others: widgets have -10, pictures 80 and more.
const RANK = -20;

export async function plugins(
  load: <Name extends keyof Packages>(name: Name) => Promise<Packages[Name]>,
): Promise<Plugin[]> {
  const { Panel } = await load("@lumino/widgets");
  const { INotebookTracker } = await load("@jupyterlab/notebook");
  const { IConsoleTracker } = await load("@jupyterlab/console");

  function register(place: Place): void {
    const createRenderer = () => viewRenderer(new Panel(), place);
    place.rendermime.addFactory({ safe: false, mimeTypes: [LIVE_VIEW], createRenderer }, RANK);
  }

  function tracking<Shown>(name: string, token: object, place: (shown: Shown) => Place): Plugin {
    return {
      id: `flowbook:${name}`,
      autoStart: true,
      requires: [token],
      activate(_, tracker: Tracker<Shown>) {
        tracker.forEach((shown) => register(place(shown)));
        tracker.widgetAdded.connect((_, shown) => register(place(shown)));
      },
    };
  }

  return [
    tracking("notebooks", INotebookTracker, ({ content, sessionContext }: NotebookPanel) => ({
      rendermime: content.rendermime,
      sessionContext,
    })),
    tracking("consoles", IConsoleTracker, ({ console }: ConsolePanel) => console),
  ];
}
