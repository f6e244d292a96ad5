// Public access: everything that anybody may read without an account.

import { h } from "../lib/dom.js";
import { sharingHead } from "../lib/heads.js";
import { allPublic, disabledNote, publicTable } from "../lib/public.js";
import { plural, t } from "../lib/text.js";
import { commands, emptyBox, loadInto } from "../lib/ui.js";

export async function show(view) {
  await loadInto(view, async () => {
    const { enabled, rules } = await allPublic();
    return [
      sharingHead("public", plural(rules.length, "{n} rule", "{n} rules")),
      disabledNote(enabled),
      rules.length > 0 ? publicTable(rules, true) : emptyBox(t("Nothing is public.")),
      h("p", { class: "hint" }, t("Links are not in this list: each of them opens one object, and is under Sharing.")),
      commands("cairn public list"),
    ];
  });
}
