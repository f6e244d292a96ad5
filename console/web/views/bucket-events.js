// The activity in a bucket.

import { activityList, readNames } from "../lib/activity-list.js";
import { api, bucketPath } from "../lib/api.js";
import { debounce, fill, h } from "../lib/dom.js";
import { bucketHead } from "../lib/heads.js";
import { searchField } from "../lib/search-field.js";
import { t } from "../lib/text.js";
import { bar, commands, quoted } from "../lib/ui.js";

export async function show(view, { parts: [bucket], parameters }) {
  const reading = readNames();
  const info = await api.get(bucketPath(bucket));
  const text = h("input", {
    type: "search",
    value: parameters.get("text") ?? "",
    maxlength: "256",
    spellcheck: "false",
    placeholder: t("Name, key, address or request id"),
    "aria-label": t("Text anywhere"),
  });
  const box = h("div");
  const list = activityList(box, () => ({ show: "all", bucket, text: text.value.trim() }), { reading });
  const [typed, forgetTyped] = debounce(250, () => list.reload());
  text.addEventListener("input", typed);
  fill(
    view,
    bucketHead(info, "bucket-events"),
    bar(searchField(text)),
    box,
    commands(`cairn event list --bucket ${quoted(bucket)} --follow`),
  );
  await list.reload();
  list.follow(true);
  return () => {
    forgetTyped();
    list.stop();
  };
}
