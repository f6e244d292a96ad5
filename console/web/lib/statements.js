// Statements of policies in tables and in words.

import { h } from "./dom.js";
import { place } from "./navigation.js";
import { t } from "./text.js";
import { link, table, tag } from "./ui.js";

// More would make a page that nobody reads.
const SHOWN_MAX = 500;

const code = (texts) => texts.map((text) => h("div", null, h("code", null, text)));

/** Shows the effect of a statement. */
export const effectTag = (effect) =>
  tag(effect === "allow" ? t("allows") : t("denies"), effect === "allow" ? "good" : "bad");

/** Describes what makes a statement apply to some requests only. */
export const restrictions = (statement) => [
  statement.only_if_absent && h("div", { class: "muted small" }, t("s3:PutObject only for keys without an object")),
  statement.source_ip &&
    h(
      "div",
      { class: "muted small" },
      t("only for clients in {networks}", { networks: statement.source_ip.join(", ") }),
    ),
];

/** Returns a table of the statements of policies. */
export function statementTable(policies) {
  const rows = policies.flatMap((policy) =>
    policy.statements.map((statement, index) => ({ ...statement, policy, index })),
  );
  return [
    table(
      t("Statements"),
      [
        { name: t("Effect"), cell: (row) => effectTag(row.effect) },
        { name: t("Actions allowed or denied"), cell: (row) => code(row.actions) },
        { name: t("On"), cell: (row) => [code(row.resources), restrictions(row)] },
        {
          name: t("By"),
          from: "medium",
          cell: (row) => [
            link(row.policy.name, place("policy", [row.policy.id])),
            h("div", { class: "muted small" }, t("statement {n}", { n: row.index + 1 })),
          ],
        },
      ],
      rows.slice(0, SHOWN_MAX),
    ),
    rows.length > SHOWN_MAX &&
      h("p", { class: "muted" }, t("The first {n} are shown. The command line lists all.", { n: SHOWN_MAX })),
  ];
}
