// Webhooks: state, deliveries, test, redelivery, rotation of the secret.

import { api } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { describe } from "../lib/errors.js";
import { icon } from "../lib/icons.js";
import { draw, go } from "../lib/navigation.js";
import { pages } from "../lib/pages.js";
import { showSecret } from "../lib/secrets.js";
import { mayAdminister } from "../lib/session.js";
import { count, plural, t } from "../lib/text.js";
import {
  acting,
  ask,
  button,
  commands,
  confirmed,
  emptyBox,
  field,
  link,
  loadInto,
  notice,
  noticeError,
  table,
  tag,
  tell,
  timeCell,
  viewHead,
} from "../lib/ui.js";

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

// The colours of deliveries by status; all others are bad.
const STATUS_KINDS = { succeeded: "good", pending: "" };

async function create() {
  const target = h("input", { type: "url", required: true, placeholder: "https://example.com/hook" });
  const bucket = h("input", { type: "text", spellcheck: "false" });
  const prefix = h("input", { type: "text", spellcheck: "false" });
  const boxes = TYPES.map((type) => [type, h("input", { type: "checkbox", checked: type === "object.created" })]);
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

async function test(hook) {
  const shown = h("div", null, h("p", { class: "muted" }, t("Sending…")));
  const run = api.post(`/api/v1/webhooks/${hook.id}/test`).then(
    (result) =>
      fill(
        shown,
        h(
          "p",
          { class: result.delivered ? "" : "bad" },
          result.delivered
            ? t("The test event was delivered (HTTP {status}).", { status: result.http_status })
            : t("The test event was not delivered."),
        ),
        table(
          t("Steps"),
          [
            { name: t("Step"), cell: (step) => step.step },
            {
              name: t("Result"),
              cell: (step) => [step.ok ? t("done") : t("failed"), " ", h("span", { class: "muted" }, step.detail)],
            },
            { name: "ms", align: "end", cell: (step) => step.milliseconds },
          ],
          result.steps,
        ),
      ),
    (error) => fill(shown, h("p", { class: "bad" }, describe(error))),
  );
  await Promise.all([run, tell(t("Test of {name}", { name: hook.target_url }), shown)]);
}

async function showDeliveries(view, id) {
  const place = h("div");
  fill(
    view,
    viewHead(t("Deliveries"), { path: link(t("Webhooks"), "#/webhooks"), sign: "send" }),
    place,
    commands(`cairn webhook deliveries --webhook ${id}`),
  );
  const again = async (row) => {
    try {
      await api.post(`/api/v1/webhook-deliveries/${row.id}/redeliver`);
      notice(t("The event is sent again."));
      list.reload();
    } catch (error) {
      noticeError(error);
    }
  };
  const list = pages(place, {
    load: async (cursor) => {
      const page = await api.get("/api/v1/webhook-deliveries", { webhook_id: id, limit: 100, ...(cursor ?? {}) });
      return {
        rows: page.deliveries,
        next: page.next_id ? { after_time: page.next_time, after_id: page.next_id } : null,
      };
    },
    draw: (rows) =>
      table(
        t("Deliveries"),
        [
          { name: t("Time"), cell: (row) => timeCell(row.timestamp, true) },
          { name: t("Event"), cell: (row) => h("code", null, row.event_type) },
          {
            name: t("Status"),
            cell: (row) => [
              tag(t(row.status), STATUS_KINDS[row.status] ?? "bad"),
              " ",
              row.http_status,
              " ",
              h("span", { class: "muted" }, row.error),
            ],
          },
          { name: t("Attempt"), align: "end", from: "medium", cell: (row) => row.attempt },
          {
            name: t("Actions"),
            head: h("span", { class: "hidden" }, t("Actions")),
            align: "end",
            from: "medium",
            cell: (row) =>
              mayAdminister() && row.status !== "pending" && button(t("Send again"), () => again(row), "link"),
          },
        ],
        rows,
      ),
    empty: () => emptyBox(t("No deliveries yet.")),
  });
  await list.ready;
  return () => list.stop();
}

export async function show(view, { parts: [id] }) {
  if (id) return showDeliveries(view, id);
  await loadInto(view, async () => {
    const { webhooks } = await api.get("/api/v1/webhooks");
    const act = (task) => acting(task, draw);
    const path = (hook, ...rest) => ["/api/v1/webhooks", hook.id, ...rest].join("/");
    const rotate = (hook) =>
      act(async () => {
        if (
          !(await confirmed({
            title: t("New signing secret"),
            text: t("The old secret is valid for another day."),
            action: t("Create secret"),
          }))
        )
          return;
        await showSecret(
          t("Signing secret"),
          t("Secret"),
          (await api.post(path(hook, "rotate-secret"), {})).signing_secret,
        );
      });
    const sendLost = (hook) =>
      act(async () => {
        const { queued } = await api.post(path(hook, "redeliver"), { since: hook.health.lost_since });
        notice(plural(queued, "{n} event is sent again.", "{n} events are sent again."));
      });
    const rows = table(
      t("Webhooks"),
      [
        {
          name: t("Address"),
          kind: "wide",
          cell: (row) => [
            h("code", { class: "key" }, row.target_url),
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
              row.enabled ? t(row.health.state) : t("off"),
              row.enabled && row.health.state === "ok" ? "good" : "warn",
            ),
            row.health.lost > 0 && [
              " ",
              tag(plural(row.health.lost, "{n} event lost", "{n} events lost"), "bad"),
              h("div", { class: "muted small" }, t("since"), " ", timeCell(row.health.lost_since, false)),
            ],
            h("div", { class: "muted small" }, row.health.last_error),
          ],
        },
        { name: t("Waiting"), align: "end", from: "medium", cell: (row) => count(row.health.pending) },
        { name: t("Last success"), from: "medium", cell: (row) => timeCell(row.health.last_success_at, true) },
        {
          name: t("Actions"),
          head: h("span", { class: "hidden" }, t("Actions")),
          align: "end",
          cell: (row) =>
            h(
              "div",
              { class: "row-actions" },
              button(t("Deliveries"), () => go("webhooks", [row.id]), "link"),
              mayAdminister() && [
                row.health.lost > 0 && row.enabled && button(t("Send lost events again"), sendLost(row), "link"),
                button(t("Test"), () => test(row), "link"),
                button(t("New secret"), rotate(row), "link"),
                button(
                  row.enabled ? t("Turn off") : t("Turn on"),
                  act(() => api.put(path(row, "status"), { enabled: !row.enabled })),
                  "link",
                ),
                button(
                  t("Delete"),
                  act(async () => {
                    if (
                      await confirmed({
                        title: t("Delete webhook"),
                        text: t("Deliveries that wait are dropped."),
                        action: t("Delete webhook"),
                      })
                    )
                      await api.remove(path(row));
                  }),
                  "link danger",
                ),
              ],
            ),
        },
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
