// The sessions of the user. A system administrator sees everybody.

import { h } from "../lib/dom.js";
import { draw } from "../lib/navigation.js";
import { everywhereButton } from "../lib/people.js";
import { mayAdminister } from "../lib/session.js";
import { SESSION_COMMANDS, sessionTable } from "../lib/session-table.js";
import { t } from "../lib/text.js";
import { commands, loadInto, viewHead } from "../lib/ui.js";

export async function show(view) {
  await loadInto(view, async () => [
    viewHead(t("Sessions"), { actions: everywhereButton() }),
    h(
      "p",
      { class: "muted" },
      mayAdminister()
        ? t("Everybody who is signed in to this console.")
        : t("Where this credential is signed in to this console."),
    ),
    await sessionTable(draw),
    commands(...SESSION_COMMANDS),
  ]);
}
