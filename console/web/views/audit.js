// The audit trail: who did what, with filters.

import { api } from "../lib/api.js";
import { debounce, fill, h } from "../lib/dom.js";
import { activityHead } from "../lib/heads.js";
import { pages } from "../lib/pages.js";
import { t } from "../lib/text.js";
import { bar, commands, emptyBox, select, table, tag, timeCell } from "../lib/ui.js";

export async function show(view, { parameters }) {
  const text = (name, label) =>
    h("input", {
      type: "search",
      class: "filter",
      name,
      placeholder: label,
      "aria-label": label,
      value: parameters.get(name) ?? "",
    });
  const inputs = [
    text("principal", t("Principal")),
    text("operation", t("Operation")),
    text("bucket", t("Bucket")),
    text("source_ip", t("Address")),
    text("request_id", t("Request id")),
  ];
  const result = select(
    [
      ["", t("all results")],
      ["allowed", t("allowed")],
      ["denied", t("denied")],
      ["failed", t("failed")],
    ],
    parameters.get("result") ?? "",
  );
  result.name = "result";
  result.setAttribute("aria-label", t("Result"));
  const place = h("div");
  fill(view, activityHead("audit"), bar(...inputs, result), place, commands("cairn audit list"));
  const filters = () => Object.fromEntries([...inputs, result].map((input) => [input.name, input.value.trim()]));
  const list = pages(place, {
    automatic: true,
    load: async (cursor) => {
      const page = await api.get("/api/v1/audit/events", { limit: 100, ...filters(), ...(cursor ?? {}) });
      return { rows: page.events, next: page.next_id ? { after_time: page.next_time, after_id: page.next_id } : null };
    },
    draw: (rows) =>
      table(
        t("Audit"),
        [
          { name: t("Time"), cell: (row) => timeCell(row.time, false) },
          { name: t("Principal"), cell: (row) => [row.principal, h("div", { class: "muted small" }, row.source_ip)] },
          {
            name: t("Operation"),
            cell: (row) => [
              h("code", null, row.operation),
              " ",
              tag(t(row.result), row.result === "allowed" ? "" : "warn"),
            ],
          },
          {
            name: t("Resource"),
            kind: "wide",
            from: "medium",
            cell: (row) => h("span", { class: "key" }, row.resource),
          },
          {
            name: t("Detail"),
            from: "wide",
            cell: (row) => [
              h("span", { class: "key" }, row.detail),
              h("div", { class: "muted small" }, row.request_id),
            ],
          },
        ],
        rows,
      ),
    empty: () => emptyBox(t("No events match.")),
  });
  const changed = debounce(300, () => list.reload());
  for (const input of inputs) input.addEventListener("input", changed);
  result.addEventListener("change", changed);
  await list.ready;
  return () => list.stop();
}
