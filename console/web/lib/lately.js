// The latest of what happened, for the overview.

import { activityFeed } from "./activity.js";
import { readNames } from "./activity-list.js";
import { nameOf, sentence } from "./activity-words.js";
import { fill, h } from "./dom.js";
import { icon } from "./icons.js";
import { place } from "./navigation.js";
import { t } from "./text.js";
import { avatar, card, link, tag, timeCell } from "./ui.js";

const SHOWN = 5;

/** Fills `box` with the latest rows of the activity. */
export async function showLately(box) {
  const feed = activityFeed({ show: "all" });
  box.setAttribute("aria-busy", "true");
  const [names] = await Promise.all([readNames(), feed.more()]).catch(() => []);
  box.removeAttribute("aria-busy");
  // Without rows, no room is kept for them.
  if (!names) return box.removeAttribute("class");
  fill(
    box,
    card(
      t("Lately"),
      link(t("All activity"), place("activity")),
      h(
        "ul",
        { class: "lately" },
        feed.rows.slice(0, SHOWN).map((row) => {
          const rule = row.events[0]?.metadata.rule_id;
          const isBad = row.audit && row.audit.result !== "allowed";
          return h(
            "li",
            null,
            rule
              ? h("span", { class: "avatar plain", "aria-hidden": "true" }, icon("clock"))
              : avatar(nameOf(row.principal)),
            h(
              "div",
              { class: "act-text" },
              h("span", null, sentence(row, names)),
              isBad && tag(row.audit.result === "denied" ? t("Refused") : t("Failed"), "warn"),
            ),
            h("span", { class: "muted small" }, timeCell(row.time)),
          );
        }),
        feed.rows.length === 0 && h("li", { class: "muted" }, t("Nothing happened yet.")),
      ),
    ),
  );
}
