// Statements of policies in lists.

import { h } from "./dom.js";
import { place } from "./navigation.js";
import { formOf, sentence } from "./policy-words.js";
import { t } from "./text.js";
import { link, tag } from "./ui.js";

// More would make a page that nobody reads.
const SHOWN_MAX = 500;

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

/** Returns the statements of policies, each with its sentence. */
export function statementList(policies) {
  const rows = policies.flatMap((policy) =>
    policy.statements.map((statement, index) => ({ policy, statement, number: index + 1 })),
  );
  return h(
    "ul",
    { class: "card" },
    rows
      .slice(0, SHOWN_MAX)
      .map(({ policy, statement, number }) =>
        h(
          "li",
          null,
          sentence(formOf(statement)),
          " ",
          h("span", { class: "muted small" }, t("statement {n} of policy", { n: number }), " "),
          link(policy.name, place("policy", [policy.id])),
        ),
      ),
    rows.length > SHOWN_MAX &&
      h("li", { class: "muted" }, t("The first {n} are shown. The command line lists all.", { n: SHOWN_MAX })),
  );
}
