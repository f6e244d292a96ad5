// Heads that several views share: those of a bucket, of activity and of sharing, with their tabs.

import { api, bucketPath } from "./api.js";
import { stoneOf } from "./icons.js";
import { place } from "./navigation.js";
import { count, size, t } from "./text.js";
import { link, tag, viewHead } from "./ui.js";

/** The head of the two views of what others can open. */
export function sharingHead(current, note) {
  return viewHead(t("Sharing"), {
    note,
    tabs: [
      [t("Links"), place("sharing"), current === "sharing"],
      [t("Public access"), place("public"), current === "public"],
    ],
  });
}

/** The head of the views of a bucket. `tags` follow those of its settings. */
export function bucketHead(info, current, { tags = [], actions = [] } = {}) {
  const { name, versioning, quota } = info;
  const tab = (text, view) => [text, place(view, [name]), current === view];
  const head = viewHead(name, {
    path: link(t("Buckets"), place("buckets")),
    sign: "bucket",
    stone: stoneOf(name),
    tags: [
      versioning === "Enabled" && tag(t("versions"), "", "layers"),
      versioning === "Suspended" && tag(t("versions suspended"), "", "layers"),
      info.object_lock && tag(t("object lock"), "", "lock"),
      tags,
      quota.bytes.mode === "limit" && tag(t("quota {size}", { size: size(quota.bytes.bytes) }), "", "gauge"),
    ],
    actions,
    tabs: [
      tab(t("Objects"), "bucket"),
      tab(t("Deleted"), "deleted"),
      tab(t("Access"), "bucket-access"),
      tab(t("Lifecycle"), "lifecycle"),
      tab(t("Events"), "bucket-events"),
      tab(t("Settings"), "settings"),
    ],
  });
  countRules(head, name);
  return head;
}

// Shows the number of lifecycle rules beside their tab. The view does not wait for it.
async function countRules(head, name) {
  const found = await api.get(bucketPath(name, "lifecycle"), {}, { isLogin: true }).catch(() => null);
  const number = found?.rules.length ?? 0;
  const entry = [...head.querySelectorAll(".tabs a")].find(
    (one) => one.getAttribute("href") === place("lifecycle", [name]),
  );
  if (entry && number > 0) entry.dataset.count = count(number);
}
