// Service accounts.

import { api } from "../lib/api.js";
import { ask } from "../lib/dialogs.js";
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { go, place, setCount } from "../lib/navigation.js";
import { secretDialog } from "../lib/secrets.js";
import { mayAdminister } from "../lib/session.js";
import { count, plural, t } from "../lib/text.js";
import { button, commands, emptyBox, field, link, loadInto, table, tag, timeCell, viewHead } from "../lib/ui.js";

async function create() {
  const name = h("input", { name: "name", type: "text", required: true, maxlength: 128, autocomplete: "off" });
  const description = h("input", { name: "description", type: "text", maxlength: 1024 });
  const made = await ask({
    title: t("Create a service account"),
    action: t("Create account"),
    content: [field(t("Name"), name), field(t("Description"), description)],
    submit: () => api.post("/api/v1/service-accounts", { name: name.value, description: description.value }),
  });
  if (!made) return;
  await secretDialog(made.credential);
  go("account", [made.service_account.id]);
}

export async function show(view) {
  await loadInto(view, async () => {
    const { service_accounts: accounts } = await api.get("/api/v1/service-accounts");
    setCount("accounts", accounts.length > 0 ? count(accounts.length) : undefined);
    const rows = table(
      t("Service accounts"),
      [
        {
          name: t("Name"),
          cell: (row) => [
            link(row.name, place("account", [row.id])),
            " ",
            !row.enabled && tag(t("off"), "warn"),
            h("div", { class: "muted small" }, row.description),
          ],
        },
        {
          name: t("Policies"),
          cell: (row) =>
            row.policies.map((policy) => policy.name).join(", ") ||
            h("span", { class: "muted" }, t("none: every request is refused")),
        },
        { name: t("Credentials"), align: "end", from: "medium", cell: (row) => row.credentials.length },
        {
          name: t("Last used"),
          from: "medium",
          cell: (row) =>
            timeCell(
              row.credentials
                .map((credential) => credential.last_used_at)
                .filter(Boolean)
                .sort()
                .pop(),
              true,
            ),
        },
      ],
      accounts,
    );
    const connect = link([icon("plug"), t("Connect an application")], place("connect"), { class: "button main" });
    const action = mayAdminister() && [button(t("Create account"), create), connect];
    const empty = emptyBox(
      t("No service accounts yet. Each application should have one of its own."),
      mayAdminister() && connect.cloneNode(true),
    );
    return [
      viewHead(t("Applications"), {
        note: plural(accounts.length, "{n} account", "{n} accounts"),
        actions: action,
      }),
      accounts.length > 0 ? rows : empty,
      commands("cairn service-account list"),
    ];
  });
}
