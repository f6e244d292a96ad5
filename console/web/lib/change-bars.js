// Bars of changes over time, with their scale.

import { h, svg } from "./dom.js";
import { DAY, date, day } from "./text.js";

// A change is to be seen beside thousands, in pixels.
const LEAST = 3;
const LABELS = 5;

/**
 * Draws a bar for each interval. Its layers, from below, are the pairs of a class and a number that `layersOf(step,
 * index)` returns.
 */
export function changeBars(steps, width, height, layersOf) {
  const most = Math.max(1, ...steps.map((step) => step.written + step.deleted));
  const each = width / steps.length;
  return steps.flatMap((step, index) => {
    const total = step.written + step.deleted;
    const layers = layersOf(step, index).filter(([, number]) => number > 0);
    // Small numbers can be seen beside large ones.
    const whole = Math.sqrt(total / most) * (height - LEAST * layers.length);
    let top = height;
    return layers.map(([kind, number]) => {
      const part = Math.max(LEAST, (whole * number) / total);
      top -= part;
      return svg("rect", {
        x: (index * each + each * 0.15).toFixed(1),
        y: top.toFixed(1),
        width: (each * 0.7).toFixed(1),
        height: part.toFixed(1),
        class: kind,
      });
    });
  });
}

/** Returns the dates below the bars. */
export function changeScale(since, until) {
  const labelOf = until - since > DAY ? day : date;
  return Array.from({ length: LABELS }, (_, index) => since + ((until - since) * index) / (LABELS - 1)).map((time) =>
    h("span", null, labelOf(new Date(time).toISOString())),
  );
}
