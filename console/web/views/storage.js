// Storage: status, inspection, repair, compaction.

import { api } from "../lib/api.js";
import { confirmed } from "../lib/dialogs.js";
import { fill, h } from "../lib/dom.js";
import { mayStore } from "../lib/session.js";
import { count, size, t } from "../lib/text.js";
import {
  button,
  commands,
  emptyBox,
  facts,
  loadInto,
  notice,
  noticeError,
  said,
  table,
  tag,
  viewHead,
} from "../lib/ui.js";

function findings(found) {
  if (found.findings.length === 0) return emptyBox(t("Nothing is wrong."));
  return table(
    t("Findings"),
    [
      { name: t("Kind"), cell: (row) => h("code", null, row.kind) },
      { name: t("Object"), cell: (row) => [row.bucket, row.key].filter(Boolean).join("/") },
      { name: t("Detail"), cell: (row) => said(row.detail) },
    ],
    found.findings,
  );
}

export async function show(view) {
  const [status, compaction, { verifications = [] }] = await Promise.all([
    api.get("/api/v1/storage/status"),
    api.get("/api/v1/storage/compact"),
    api.get("/api/v1/verify/progress"),
  ]);
  const place = h("div");
  const inspect = () =>
    loadInto(place, async () => {
      const found = await api.get("/api/v1/storage/inspect", { maximum_entries: 1_000_000 });
      return [
        h("h2", null, t("Inspection")),
        facts([
          [t("Examined"), count(found.entries_examined)],
          [t("Complete"), found.complete ? t("yes") : t("no: there are more records")],
          [t("Orphaned space"), size(found.orphaned_bytes)],
        ]),
        findings(found),
      ];
    });
  const repair = async () => {
    try {
      const plan = await api.post("/api/v1/storage/repair", { dry_run: true, maximum_entries: 100_000_000 });
      if (plan.orphaned_bytes === 0) return notice(t("There is nothing to repair."));
      const text = t("{bytes} of space belong to no object. They will be freed; nothing else changes.", {
        bytes: size(plan.orphaned_bytes),
      });
      if (!(await confirmed({ title: t("Repair"), text, action: t("Free the space") }))) return undefined;
      const done = await api.post("/api/v1/storage/repair", { dry_run: false, maximum_entries: 100_000_000 });
      return notice(t("{bytes} were freed.", { bytes: size(done.removed_bytes) }));
    } catch (error) {
      return noticeError(error);
    }
  };
  const compact = async () => {
    try {
      await api.post("/api/v1/storage/compact");
      notice(t("The compaction has begun."));
    } catch (error) {
      noticeError(error);
    }
  };
  fill(
    view,
    viewHead(t("Storage"), {
      tags: [
        tag(t(`disk ${status.disk_state}`), status.disk_state === "ok" ? "good" : "warn"),
        tag(t(`writes ${status.writes}`), status.writes === "accepted" ? "good" : "bad"),
      ],
      actions: [
        mayStore() && button(t("Repair"), repair),
        mayStore() && button(t("Compact"), compact),
        button(t("Inspect"), inspect, "main"),
      ],
    }),
    facts([
      [t("Capacity"), size(status.capacity_bytes)],
      [t("Free"), size(status.available_bytes)],
      [t("Uploads in progress"), size(status.temporary_upload_bytes)],
      [t("Compaction"), t(compaction.state)],
      [t("Verifications running"), count(verifications.length)],
    ]),
    place,
    commands("cairn storage status", "cairn storage inspect", "cairn verify store"),
  );
}
