// Webhooks: a list with their states, and the page of one.

import { api } from "../lib/api.js";
import { ask } from "../lib/dialogs.js";
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { menuButton } from "../lib/menu.js";
import { draw, go, place } from "../lib/navigation.js";
import { showSecret } from "../lib/secrets.js";
import { mayAdminister } from "../lib/session.js";
import { count, plural, t } from "../lib/text.js";
import {
  actionsColumn,
  button,
  commands,
  emptyBox,
  field,
  link,
  loadInto,
  table,
  tag,
  timeCell,
  viewHead,
} from "../lib/ui.js";
import { redeliverLost, showWebhook, stateWord, testWebhook, webhookMenu } from "../lib/webhook-page.js";

const TYPES = [
  "object.created",
  "object.updated",
  "object.deleted",
  "object.restored",
  "multipart.completed",
  "multipart.aborted",
  "bucket.created",
  "bucket.deleted",
];

async function create() {
  const target = h("input", {
    name: "target_url",
    type: "url",
    required: true,
    placeholder: "https://example.com/hook",
  });
  const bucket = h("input", { name: "bucket_filter", type: "text", spellcheck: "false" });
  const prefix = h("input", { name: "object_prefix_filter", type: "text", spellcheck: "false" });
  const boxes = TYPES.map((type) => [
    type,
    h("input", { name: "event_types", type: "checkbox", checked: type === "object.created" }),
  ]);
  const made = await ask({
    title: t("Create a webhook"),
    action: t("Create webhook"),
    content: [
      field(t("Address"), target),
      h(
        "fieldset",
        null,
        h("legend", null, t("Events")),
        boxes.map(([type, box]) => h("label", { class: "check" }, box, h("code", null, type))),
      ),
      field(t("Only this bucket"), bucket, t("Empty: all buckets.")),
      field(t("Only keys that begin with"), prefix, t("Empty: all objects.")),
    ],
    submit: () =>
      api.post("/api/v1/webhooks", {
        target_url: target.value,
        event_types: boxes.filter(([, box]) => box.checked).map(([type]) => type),
        bucket_filter: bucket.value || null,
        object_prefix_filter: prefix.value || null,
      }),
  });
  if (!made) return;
  await showSecret(t("Signing secret"), t("Secret"), made.signing_secret);
  draw();
}

export async function show(view, { parts: [id], parameters }) {
  if (id) return showWebhook(view, id, parameters);
  await loadInto(view, async () => {
    const { webhooks } = await api.get("/api/v1/webhooks");
    const rows = table(
      t("Webhooks"),
      [
        {
          name: t("Address"),
          kind: "wide",
          cell: (row) => [
            link(h("code", { class: "key" }, row.target_url), place("webhooks", [row.id])),
            h(
              "div",
              { class: "muted small" },
              row.event_types.join(", "),
              row.bucket_filter && ` · ${row.bucket_filter}`,
              row.object_prefix_filter && ` · ${row.object_prefix_filter}`,
            ),
          ],
        },
        {
          name: t("State"),
          cell: (row) => [
            tag(
              row.enabled ? stateWord(row.health.state) : t("off"),
              row.enabled && row.health.state === "ok" ? "good" : "warn",
            ),
            row.health.lost > 0 && [
              " ",
              tag(plural(row.health.lost, "{n} event lost", "{n} events lost"), "bad"),
              h("div", { class: "muted small" }, t("since"), " ", timeCell(row.health.lost_since, false)),
            ],
            h("div", { class: "muted small", lang: "en" }, row.health.last_error),
          ],
        },
        { name: t("Waiting"), align: "end", from: "medium", cell: (row) => count(row.health.pending) },
        { name: t("Last success"), from: "medium", cell: (row) => timeCell(row.health.last_success_at, true) },
        actionsColumn((row) => [
          button(t("Deliveries"), () => go("webhooks", [row.id])),
          mayAdminister() && [
            row.health.lost > 0 &&
              row.enabled &&
              button(plural(row.health.lost, "Redeliver {n} lost", "Redeliver {n} lost"), () =>
                redeliverLost(row, draw),
              ),
            button(t("Test"), () => testWebhook(row)),
            menuButton(t("More actions"), () => webhookMenu(row, draw)),
          ],
        ]),
      ],
      webhooks,
    );
    const action = mayAdminister() && button([icon("plus"), t("Create webhook")], create, "main");
    return [
      viewHead(t("Webhooks"), { actions: action }),
      webhooks.length > 0
        ? rows
        : emptyBox(
            t("No webhooks. A webhook sends every event to an address."),
            mayAdminister() && button(t("Create webhook"), create, "main"),
          ),
      commands("cairn webhook list", ...webhooks.map((hook) => hook.health.redeliver_command).filter(Boolean)),
    ];
  });
}
