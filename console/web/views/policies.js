// Policies: what each says, and who has it.

import { api } from "../lib/api.js";
import { confirmed } from "../lib/dialogs.js";
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { draw, place } from "../lib/navigation.js";
import { formOf, sentence } from "../lib/policy-words.js";
import { mayAdminister } from "../lib/session.js";
import { count, plural, t } from "../lib/text.js";
import { actionsColumn, button, commands, emptyBox, link, loadInto, table, viewHead } from "../lib/ui.js";

const SHOWN_MAX = 5;
// Accounts and groups that a question names.
const NAMED_MAX = 20;

export async function show(view) {
  await loadInto(view, async () => {
    const [{ policies }, accounts] = await Promise.all([
      api.get("/api/v1/policies"),
      api.get("/api/v1/service-accounts"),
    ]);
    const nameOf = new Map(accounts.service_accounts.map((account) => [account.id, account.name]));
    const remove = async (policy) => {
      const users = policy.attached_to.map((id) => nameOf.get(id) ?? id);
      const groups = (await api.get("/members")).members
        .filter((one) => one.policy === policy.name)
        .map(({ value }) => value);
      const list = (label, names) =>
        names.length > 0 && [
          h("p", null, label),
          h(
            "ul",
            { class: "key" },
            names.slice(0, NAMED_MAX).map((name) => h("li", null, name)),
            names.length > NAMED_MAX && h("li", null, t("and {n} more", { n: count(names.length - NAMED_MAX) })),
          ),
        ];
      const isDeleted = await confirmed({
        title: t("Delete policy {name}", { name: policy.name }),
        text: users.length + groups.length > 0 ? "" : t("No account and no group has it."),
        shown: [
          list(t("It is attached to these accounts. Detach it from them first:"), users),
          list(t("People with these values of the claim then have no rights at all:"), groups),
        ],
        action: t("Delete policy"),
        task: () => api.remove(`/api/v1/policies/${policy.id}`),
      });
      if (isDeleted) draw();
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
          kind: "wide",
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
