// The life of an object: what happened to it, the latest first.

import { api, bucketPath, encodeKey } from "./api.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { plural, size, t } from "./text.js";
import { card, shortName, timeCell } from "./ui.js";

const KINDS = {
  written: [() => t("Written"), "plus"],
  overwritten: [() => t("Overwritten"), "layers"],
  deleted: [() => t("Deleted"), "trash"],
  restored: [() => t("Restored"), "undo"],
  expired: [() => t("Removed by a rule"), "clock"],
  shared: [() => t("Shared"), "link"],
  embedded: [() => t("Embedded"), "code"],
};

/** Returns a card with what happened to an object, as far as it is known. */
export async function lifeCard(bucket, key) {
  const { entries, complete } = await api.get(bucketPath(bucket, "object-history", encodeKey(key)));
  return card(
    t("Life of this object"),
    complete ? plural(entries.length, "{n} entry", "{n} entries") : t("the latest"),
    h(
      "ol",
      { class: "life" },
      entries.map((entry) => {
        const [name, sign] = KINDS[entry.kind] ?? [() => entry.kind, "more"];
        const by = [entry.principal && shortName(entry.principal), entry.source_ip, entry.rule_id];
        return h(
          "li",
          { class: entry.kind },
          h("span", null, icon(sign)),
          h(
            "div",
            null,
            h("b", null, name()),
            h("div", { class: "muted small key" }, by.filter(Boolean).join(", ")),
            entry.version_id && h("code", { class: "muted" }, entry.version_id),
          ),
          h(
            "div",
            { class: "muted small end" },
            timeCell(entry.time),
            entry.size !== null && h("div", null, size(entry.size)),
          ),
        );
      }),
    ),
  );
}
