// Policies: list, creation as form or JSON, replacement, deletion.

import { api } from "../lib/api.js";
import { h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { draw, place } from "../lib/navigation.js";
import { mayAdminister } from "../lib/session.js";
import { plural, t } from "../lib/text.js";
import {
  ask,
  button,
  commands,
  confirmed,
  emptyBox,
  field,
  link,
  loadInto,
  noticeError,
  table,
  viewHead,
} from "../lib/ui.js";

const ACTIONS = ["s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ManageBucket"];

const statementsInput = () => h("textarea", { rows: 12, spellcheck: "false", "aria-label": t("Statements as JSON") });

async function create() {
  const name = h("input", { type: "text", required: true, autocomplete: "off" });
  const bucket = h("input", { type: "text", required: true, spellcheck: "false" });
  const prefix = h("input", { type: "text", spellcheck: "false" });
  const boxes = ACTIONS.map((action) => [
    action,
    h("input", { type: "checkbox", checked: action === "s3:ListBucket" || action === "s3:GetObject" }),
  ]);
  const onlyIfAbsent = h("input", { type: "checkbox" });
  const json = statementsInput();
  const write = () => {
    const chosen = boxes.filter(([, box]) => box.checked).map(([action]) => action);
    const ofBucket = chosen.filter((action) => action === "s3:ListBucket" || action === "s3:ManageBucket");
    const ofObjects = chosen.filter((action) => !ofBucket.includes(action));
    const where = bucket.value || "BUCKET";
    const statements = [];
    if (ofBucket.length > 0) statements.push({ effect: "allow", actions: ofBucket, resources: [`bucket:${where}`] });
    const restriction = onlyIfAbsent.checked && ofObjects.includes("s3:PutObject") ? { only_if_absent: true } : {};
    if (ofObjects.length > 0)
      statements.push({
        effect: "allow",
        actions: ofObjects,
        resources: [`bucket:${where}/${prefix.value}*`],
        ...restriction,
      });
    json.value = JSON.stringify(statements, null, 2);
  };
  write();
  for (const input of [bucket, prefix, onlyIfAbsent, ...boxes.map(([, box]) => box)])
    input.addEventListener("input", write);
  (await ask({
    title: t("Create a policy"),
    action: t("Create policy"),
    content: [
      field(t("Name"), name),
      field(t("Bucket"), bucket),
      field(t("Prefix of keys"), prefix, t("Empty: all objects.")),
      h(
        "fieldset",
        null,
        h("legend", null, t("Allowed")),
        boxes.map(([action, box]) => h("label", { class: "check" }, box, h("code", null, action))),
        h("label", { class: "check" }, onlyIfAbsent, t("Write new objects only: nothing is overwritten")),
      ),
      field(t("Statements"), json, t("Written by the form above. Changes here count.")),
    ],
    submit: () =>
      api.post("/api/v1/policies", { name: name.value, description: "", statements: JSON.parse(json.value) }),
  })) && draw();
}

async function replace(policy) {
  const name = h("input", { type: "text", required: true, autocomplete: "off", value: policy.name });
  const description = h("input", { type: "text", autocomplete: "off", value: policy.description });
  const json = statementsInput();
  json.value = JSON.stringify(policy.statements, null, 2);
  (await ask({
    title: t("Edit policy {name}", { name: policy.name }),
    action: t("Save"),
    content: [
      field(t("Name"), name),
      field(t("Description"), description),
      field(t("Statements"), json, t("In force for the next request of every account that has this policy.")),
    ],
    submit: () =>
      api.put(`/api/v1/policies/${policy.id}`, {
        name: name.value,
        description: description.value,
        statements: JSON.parse(json.value),
      }),
  })) && draw();
}

export async function show(view, { parts: [wanted] }) {
  await loadInto(view, async () => {
    const [{ policies }, accounts] = await Promise.all([
      api.get("/api/v1/policies"),
      api.get("/api/v1/service-accounts"),
    ]);
    const nameOf = new Map(accounts.service_accounts.map((account) => [account.id, account.name]));
    const remove = async (policy) => {
      if (
        !(await confirmed({
          title: t("Delete policy {name}", { name: policy.name }),
          text: t("A policy that is attached to accounts cannot be deleted."),
          action: t("Delete policy"),
        }))
      )
        return;
      await api.remove(`/api/v1/policies/${policy.id}`).then(draw, noticeError);
    };
    const rows = table(
      t("Policies"),
      [
        {
          name: t("Name"),
          cell: (row) => [h("b", null, row.name), h("div", { class: "muted small" }, row.description)],
        },
        {
          name: t("Statements"),
          cell: (row) =>
            h(
              "details",
              { open: row.id === wanted },
              h("summary", null, plural(row.statements.length, "{n} statement", "{n} statements")),
              h("pre", { class: "mono", tabindex: "0" }, JSON.stringify(row.statements, null, 2)),
            ),
        },
        {
          name: t("Attached to"),
          cell: (row) =>
            row.attached_to.flatMap((id, index) => [
              index > 0 && ", ",
              link(nameOf.get(id) ?? id, place("account", [id])),
            ]),
        },
        {
          name: t("Actions"),
          head: h("span", { class: "hidden" }, t("Actions")),
          align: "end",
          cell: (row) =>
            mayAdminister() && [
              button(t("Edit"), () => replace(row), "link"),
              button(t("Delete"), () => remove(row), "link danger"),
            ],
        },
      ],
      policies,
    );
    return [
      viewHead(t("Policies"), {
        note: plural(policies.length, "{n} policy", "{n} policies"),
        actions: [
          link(t("Check access"), place("access"), { class: "button" }),
          mayAdminister() && button([icon("plus"), t("Create policy")], create, "main"),
        ],
      }),
      policies.length > 0
        ? rows
        : emptyBox(
            t("No policies yet. A policy says what an account may do."),
            mayAdminister() && button(t("Create policy"), create, "main"),
          ),
      commands("cairn policy list"),
    ];
  });
}
