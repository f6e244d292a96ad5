// Sharing: everything that visitors can open with a link.

import { api } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { sharingHead } from "../lib/heads.js";
import { linkTable } from "../lib/links.js";
import { pages } from "../lib/pages.js";
import { isMember } from "../lib/session.js";
import { t } from "../lib/text.js";
import { bar, commands, emptyBox, facts, select, viewHead } from "../lib/ui.js";

async function rules() {
  const settings = await api.get("/api/v1/sharing/settings");
  return [
    h("h2", null, t("Rules")),
    facts([
      [
        t("Longest lifetime"),
        settings.maximum_lifetime_days ? t("{n} days", { n: settings.maximum_lifetime_days }) : t("no limit"),
      ],
      [t("Expiry"), settings.require_expiration ? t("required") : t("optional")],
      [t("Embeds"), settings.embeds_enabled ? t("on") : t("off")],
      [t("Addresses of shares"), settings.share_base_url ?? t("not set: the address of this listener")],
      [t("Addresses of embeds"), settings.embed_base_url ?? t("not set: the address of the data plane")],
    ]),
    commands("cairn share list", "cairn embed list"),
  ];
}

export async function show(view, { parameters }) {
  const kind = select(
    [
      ["shares", t("Shares")],
      ["embeds", t("Embeds")],
    ],
    parameters.get("kind") ?? "shares",
  );
  kind.setAttribute("aria-label", t("Kind of link"));
  const status = select(
    [
      ["active", t("active")],
      ["", t("all")],
      ["revoked", t("revoked")],
      ["expired", t("expired")],
      ["exhausted", t("exhausted")],
    ],
    "active",
  );
  status.setAttribute("aria-label", t("Status"));
  const place = h("div");
  // A member sees the own shares.
  if (isMember()) fill(view, viewHead(t("Sharing")), bar(status), place);
  else fill(view, sharingHead("sharing"), bar(kind, status), place, await rules());
  const list = pages(place, {
    load: async (cursor) => {
      const page = await api.get(`/api/v1/${kind.value}`, {
        status: status.value,
        limit: 100,
        continuation_token: cursor,
      });
      return {
        rows: page[kind.value].map((row) => ({ ...row, kind: kind.value.slice(0, -1) })),
        next: page.next_continuation_token,
      };
    },
    draw: (rows) => linkTable(rows, () => list.reload()),
    empty: () => emptyBox(t("Nothing is shared. Open an object to share it.")),
  });
  kind.addEventListener("change", () => list.reload());
  status.addEventListener("change", () => list.reload());
  await list.ready;
  return () => list.stop();
}
