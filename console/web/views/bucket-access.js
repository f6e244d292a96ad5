// The access to a bucket: accounts with what their policies say, and what is public.

import { api, bucketPath } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { bucketHead } from "../lib/heads.js";
import { icon } from "../lib/icons.js";
import { place } from "../lib/navigation.js";
import { allPublic, publicCommands, publicSection } from "../lib/public.js";
import { rightsTable } from "../lib/rights.js";
import { mayAdminister, mayOversee } from "../lib/session.js";
import { t } from "../lib/text.js";
import { commands, link, quoted } from "../lib/ui.js";

export async function show(view, { parts: [bucket] }) {
  const [info, open, { blocked }, accounts, policies] = await Promise.all([
    api.get(bucketPath(bucket)),
    allPublic(bucket),
    api.get(bucketPath(bucket, "public-access")),
    mayOversee() ? api.get("/api/v1/service-accounts") : null,
    mayOversee() ? api.get("/api/v1/policies") : null,
  ]);
  fill(
    view,
    bucketHead(info, "bucket-access", {
      actions: [
        mayOversee() &&
          link([icon("person"), t("Ask a question")], place("access", [], { bucket }), { class: "button" }),
        mayAdminister() &&
          link([icon("plug"), t("Connect an application")], place("connect", [], { bucket }), { class: "button main" }),
      ],
    }),
    accounts && rightsTable(bucket, accounts.service_accounts, policies.policies),
    h("div", null, publicSection(bucket, open, blocked)),
    commands(
      ...publicCommands(bucket, open.rules),
      ...(mayOversee()
        ? [`cairn policy check --account ACCOUNT --action s3:GetObject --resource ${quoted(`${bucket}/KEY`)}`]
        : []),
    ),
  );
}
