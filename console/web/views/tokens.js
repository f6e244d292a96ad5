// Management tokens, and the sessions that people have with them.

import { api } from "../lib/api.js";
import { ask, confirmed } from "../lib/dialogs.js";
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { draw } from "../lib/navigation.js";
import { showSecret } from "../lib/secrets.js";
import { SESSION_COMMANDS, sessionTable } from "../lib/session-table.js";
import { t } from "../lib/text.js";
import {
  actionsColumn,
  button,
  commands,
  emptyBox,
  field,
  loadInto,
  noticeError,
  select,
  table,
  timeCell,
  viewHead,
} from "../lib/ui.js";

async function create() {
  const name = h("input", { name: "name", type: "text", required: true, autocomplete: "off" });
  const role = select(
    [
      ["auditor", t("auditor: sees everything, changes nothing")],
      ["storage_admin", t("storage administrator: buckets and objects")],
      ["system_admin", t("system administrator: everything")],
    ],
    "auditor",
  );
  const lasts = select(
    [
      ["86400", t("a day")],
      ["2592000", t("30 days")],
      ["31536000", t("a year")],
      ["", t("no limit")],
    ],
    "2592000",
  );
  const made = await ask({
    title: t("Create a token"),
    action: t("Create token"),
    content: [field(t("Name"), name), field(t("Role"), role), field(t("Valid for"), lasts)],
    submit: () =>
      api.post("/api/v1/management-tokens", {
        name: name.value,
        role: role.value,
        expires_in_seconds: lasts.value ? Number(lasts.value) : undefined,
      }),
  });
  if (!made) return;
  await showSecret(t("New token"), t("Token"), made.token);
  draw();
}

export async function show(view) {
  await loadInto(view, async () => {
    const { management_tokens: tokens } = await api.get("/api/v1/management-tokens");
    const remove = async (token) => {
      if (
        !(await confirmed({
          title: t("Delete token {name}", { name: token.name }),
          text: t("It stops working at once, and its sessions end."),
          action: t("Delete token"),
        }))
      )
        return;
      await api.remove(`/api/v1/management-tokens/${token.id}`).then(draw, noticeError);
    };
    const rows = table(
      t("Tokens"),
      [
        { name: t("Name"), cell: (row) => row.name },
        { name: t("Role"), cell: (row) => h("code", null, row.role) },
        { name: t("Created"), from: "medium", cell: (row) => timeCell(row.created_at) },
        { name: t("Expires"), cell: (row) => timeCell(row.expires_at) },
        actionsColumn((row) => [button(t("Delete"), () => remove(row), "link danger")]),
      ],
      tokens,
    );
    return [
      viewHead(t("Tokens"), { actions: button([icon("plus"), t("Create token")], create, "main") }),
      tokens.length > 0
        ? rows
        : emptyBox(t("No management tokens. Give each person one, instead of the system token.")),
      h("h2", null, t("Sessions")),
      await sessionTable(draw),
      commands("cairn token list", ...SESSION_COMMANDS),
    ];
  });
}
