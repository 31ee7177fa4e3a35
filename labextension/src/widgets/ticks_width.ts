// How wide a chart's vertical axis is: as its widest number.

import uPlot from "uplot";

import { Theme, scaleOf, smallFont } from "./theme.js";

/**
 * What an axis of uPlot's takes for its size.
 *
 * @param least as how wide the numbers count at least.
 * @param room what is added for the space around them.
 */
export function ticksWidth(theme: Theme, least: number, room: number): uPlot.Axis.Size {
  return (plot, values) => {
    plot.ctx.font = smallFont(theme);
    const widths = (values ?? []).map((text) => plot.ctx.measureText(text ?? "").width);
    return Math.ceil(Math.max(least * scaleOf(theme), ...widths) + room);
  };
}
