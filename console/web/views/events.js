// What happened to objects and buckets.

import { fill, h } from "../lib/dom.js";
import { showEvents } from "../lib/event-list.js";
import { activityHead } from "../lib/heads.js";
import { commands } from "../lib/ui.js";

export async function show(view) {
  const place = h("div");
  fill(view, activityHead("events"), place, commands("cairn event list --follow"));
  return showEvents(place, "");
}
