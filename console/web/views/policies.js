// Policies: what each says, and who has it.

import { api } from "../lib/api.js";
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { draw, place } from "../lib/navigation.js";
import { formOf, sentence } from "../lib/policy-words.js";
import { mayAdminister } from "../lib/session.js";
import { plural, t } from "../lib/text.js";
import {
  actionsColumn,
  button,
  commands,
  confirmed,
  emptyBox,
  link,
  loadInto,
  noticeError,
  table,
  viewHead,
} from "../lib/ui.js";

const SHOWN_MAX = 5;

export async function show(view) {
  await loadInto(view, async () => {
    const [{ policies }, accounts] = await Promise.all([
      api.get("/api/v1/policies"),
      api.get("/api/v1/service-accounts"),
    ]);
    const nameOf = new Map(accounts.service_accounts.map((account) => [account.id, account.name]));
    const remove = async (policy) => {
      if (
        !(await confirmed({
          title: t("Delete policy {name}", { name: policy.name }),
          text: t("A policy that is attached to accounts cannot be deleted."),
          action: t("Delete policy"),
        }))
      )
        return;
      await api.remove(`/api/v1/policies/${policy.id}`).then(draw, noticeError);
    };
    const rows = table(
      t("Policies"),
      [
        {
          name: t("Name"),
          cell: (row) => [
            link(row.name, place("policy", [row.id])),
            h("div", { class: "muted small" }, row.description),
          ],
        },
        {
          name: t("What it says"),
          cell: (row) =>
            row.statements
              .slice(0, SHOWN_MAX)
              .map((statement) => h("p", { class: "small" }, sentence(formOf(statement))))
              .concat(
                row.statements.length > SHOWN_MAX
                  ? [h("p", { class: "muted small" }, t("and {n} more", { n: row.statements.length - SHOWN_MAX }))]
                  : [],
              ),
        },
        {
          name: t("Attached to"),
          cell: (row) =>
            row.attached_to.flatMap((id, index) => [
              index > 0 && ", ",
              link(nameOf.get(id) ?? id, place("account", [id])),
            ]),
        },
        actionsColumn(
          (row) =>
            mayAdminister() && [
              link(t("Edit"), place("policy", [row.id])),
              button(t("Delete"), () => remove(row), "link danger"),
            ],
        ),
      ],
      policies,
    );
    return [
      viewHead(t("Policies"), {
        note: plural(policies.length, "{n} policy", "{n} policies"),
        actions: [
          link(t("Check access"), place("access"), { class: "button" }),
          mayAdminister() &&
            link([icon("plus"), t("Create policy")], place("policy", ["new"]), { class: "button main" }),
        ],
      }),
      policies.length > 0
        ? rows
        : emptyBox(
            t("No policies yet. A policy says what an account may do."),
            mayAdminister() && link(t("Create policy"), place("policy", ["new"]), { class: "button main" }),
          ),
      commands("cairn policy list"),
    ];
  });
}
