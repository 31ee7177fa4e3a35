// Renders an output with a view of Flowbook: live while its kernel lives, and else as its picture.

import { MimeModel, Panel, Place, Renderer, RendererFactory } from "./jupyterlab.js";

/** As in `front_end.py`. */
export const LIVE_VIEW = "application/vnd.flowbook.view+json";
const WIDGET_VIEW = "application/vnd.jupyter.widget-view+json";

// Milliseconds. Where the view is there it comes sooner, and its picture before it would flicker.
const PATIENCE = 300;

/** The live view, if the page has it: what a renderer of widgets made of it. */
interface Live {
  readonly id: string;
  readonly factory: RendererFactory;
  readonly renderer: Renderer & Panel;
}

/**
 * The renderer of one output.
 *
 * @param panel what it renders into.
 * @param place where: its renderers of widgets, and of the forms that are stored beside.
 */
export function viewRenderer(panel: Panel, { rendermime, sessionContext }: Place): Renderer {
  let shown: MimeModel | null = null;
  let live: Live | null = null;
  let picture: Renderer | null = null;

  function choose(): void {
    const isLive = live !== null && live.renderer.widgets.length > 0;
    live?.renderer.setHidden(!isLive);
    picture?.setHidden(isLive);
  }

  async function renderLive(): Promise<void> {
    const factory = rendermime.getFactory(WIDGET_VIEW);
    const said = shown?.data[LIVE_VIEW] as { model_id: string } | undefined;
    if (!factory || !said) return;
    // The picture may be new beside the same view, which stays as a person left it.
    if (live?.id === said.model_id && live.factory === factory) return;
    live?.renderer.dispose();
    const renderer = rendermime.createRenderer(WIDGET_VIEW) as Renderer & Panel;
    live = { id: said.model_id, factory, renderer };
    renderer.setHidden(true);
    panel.addWidget(renderer);
    watch.observe(renderer.node, { childList: true });
    // Words say what it waits for or does not find: they stay hidden.
    await renderer.renderModel({ data: { [WIDGET_VIEW]: { ...said } }, metadata: {}, trusted: true, setData() {} });
  }

  async function renderPicture(model: MimeModel): Promise<void> {
    const { [LIVE_VIEW]: _, [WIDGET_VIEW]: __, ...data } = model.data;
    const mimeType = rendermime.preferredMimeType(data, model.trusted ? "any" : "ensure");
    picture?.dispose();
    picture = null;
    if (mimeType === undefined) return;
    picture = rendermime.createRenderer(mimeType);
    picture.setHidden(true);
    panel.addWidget(picture);
    await picture.renderModel(model);
    // JupyterLab shows pictures without fitting them.
    for (const image of picture.node.querySelectorAll("img")) image.style.maxWidth = "100%";
  }

  // Views come where the page finds its kernel, and go where a cell runs again.
  const watch = new MutationObserver(choose);
  // Where a kernel is found, its widgets get a renderer of their own.
  const find = (): void => void renderLive();
  sessionContext.statusChanged.connect(find);
  panel.disposed.connect(() => {
    watch.disconnect();
    sessionContext.statusChanged.disconnect(find);
  });

  return Object.assign(panel, {
    async renderModel(model: MimeModel): Promise<void> {
      shown = model;
      const patience = new Promise((done) => setTimeout(done, PATIENCE));
      await Promise.all([Promise.race([renderLive(), patience]), renderPicture(model)]);
      choose();
    },
  });
}
