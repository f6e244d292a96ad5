// The sessions of the console that the user may see: the own ones, and all for a system administrator.

import { api } from "./api.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { t } from "./text.js";
import { actionsColumn, button, noticeError, table, tag, timeCell } from "./ui.js";

async function end(session, done) {
  const text = session.is_current
    ? t("You will be signed out here.")
    : t("Whoever uses it is signed out at once. A token stays valid: delete it, too, if others have it.");
  if (
    !(await confirmed({
      title: t("End session of {name}", { name: session.principal }),
      text,
      action: t("End session"),
    }))
  )
    return;
  try {
    await api.remove(`/sessions/${session.id}`);
    if (session.is_current) location.reload();
    else done();
  } catch (error) {
    noticeError(error);
  }
}

/** Returns a table of the sessions. `done` is called when one has ended. */
export async function sessionTable(done) {
  const { sessions } = await api.get("/sessions");
  return table(
    t("Sessions"),
    [
      {
        name: t("Principal"),
        cell: (row) => [
          row.principal,
          " ",
          row.is_current && tag(t("this one"), "good"),
          h("div", { class: "muted small" }, h("code", null, row.role)),
        ],
      },
      { name: t("Client"), cell: (row) => [row.source_ip, h("div", { class: "muted small" }, row.user_agent)] },
      { name: t("Signed in"), from: "medium", cell: (row) => timeCell(row.created_at, true) },
      { name: t("Last used"), cell: (row) => timeCell(row.last_used_at, true) },
      { name: t("Ends"), from: "wide", cell: (row) => timeCell(row.expires_at) },
      actionsColumn((row) => [button(t("End session"), () => end(row, done), "link danger")]),
    ],
    sessions,
  );
}

const PAGE_HEADERS = "-H 'x-service-console: 1' -H 'sec-fetch-site: same-origin'";

/** The commands that list the sessions. They need a session of their own. */
export const SESSION_COMMANDS = [
  `curl -c session.txt ${PAGE_HEADERS} -d '{"token":"TOKEN"}' ${location.origin}/session`,
  `curl -b session.txt ${location.origin}/sessions`,
];
