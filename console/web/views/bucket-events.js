// What happened in a bucket.

import { api, bucketPath } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { showEvents } from "../lib/event-list.js";
import { bucketHead } from "../lib/heads.js";
import { commands, quoted } from "../lib/ui.js";

export async function show(view, { parts: [bucket] }) {
  const info = await api.get(bucketPath(bucket));
  const place = h("div");
  fill(
    view,
    bucketHead(info, "bucket-events"),
    place,
    commands(`cairn event list --bucket ${quoted(bucket)} --follow`),
  );
  return showEvents(place, bucket);
}
