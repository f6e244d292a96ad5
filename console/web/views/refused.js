// Refused S3 requests: by client and reason, with what would help, and one by its id.

import { api } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { go, place } from "../lib/navigation.js";
import { count, exactDate, plural, size, t } from "../lib/text.js";
import {
  actionsColumn,
  bar,
  commands,
  emptyBox,
  facts,
  link,
  loadInto,
  quoted,
  said,
  table,
  tag,
  timeCell,
  viewHead,
} from "../lib/ui.js";

// The most that the server keeps.
const LIMIT = 1000;

const resource = (row) => [row.bucket, row.key].filter(Boolean).join("/");

// Groups the requests of one client that were refused for the same reason, about one bucket. The latest is the first.
function grouped(rows) {
  const groups = new Map();
  for (const row of rows) {
    const key = JSON.stringify([row.client, row.user_agent, row.code, row.principal, row.operation, row.bucket]);
    if (groups.has(key)) groups.get(key).push(row);
    else groups.set(key, [row]);
  }
  return [...groups.values()];
}

function requests(rows) {
  return table(
    t("Requests"),
    [
      { name: t("Time"), cell: (row) => timeCell(row.time, true) },
      { name: t("Operation"), cell: (row) => h("code", null, row.operation ?? row.method) },
      { name: t("Resource"), from: "medium", cell: resource },
      { name: t("Answer"), from: "wide", cell: (row) => said(row.message) },
      { name: t("Request id"), cell: (row) => link(row.request_id, place("refused", [row.request_id])) },
    ],
    rows,
  );
}

// Opens the single requests of a group below its row.
function opener(group) {
  const toggle = h(
    "button",
    {
      type: "button",
      class: "link",
      "aria-expanded": "false",
      onclick: () => {
        const row = toggle.closest("tr");
        const isOpen = toggle.getAttribute("aria-expanded") === "true";
        toggle.setAttribute("aria-expanded", String(!isOpen));
        if (isOpen) row.nextElementSibling.remove();
        else row.after(h("tr", null, h("td", { colspan: row.cells.length }, requests(group))));
      },
    },
    t("Show requests"),
  );
  return toggle;
}

async function showAll(view) {
  const { refused_requests: rows } = await api.get("/api/v1/refused-requests", { limit: LIMIT });
  const id = h("input", {
    type: "search",
    class: "filter",
    placeholder: t("Request id"),
    "aria-label": t("Request id"),
  });
  const find = h(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        if (id.value.trim()) go("refused", [id.value.trim()]);
      },
    },
    id,
  );
  const groups = table(
    t("Refused requests"),
    [
      {
        name: t("Client"),
        cell: ([row]) => [
          row.client,
          row.principal && ` · ${row.principal}`,
          h("div", { class: "muted small" }, row.user_agent),
        ],
      },
      { name: t("Reason"), cell: ([row]) => tag(row.code, "warn") },
      { name: t("What helps"), cell: ([row]) => said(row.advice ?? row.message) },
      { name: t("Requests"), align: "end", cell: (group) => count(group.length) },
      { name: t("Last"), cell: ([row]) => timeCell(row.time, true) },
      actionsColumn(opener),
    ],
    grouped(rows),
  );
  fill(
    view,
    viewHead(t("Refused requests")),
    bar(find),
    h("p", { class: "muted" }, t("The last refused S3 requests since the start, with what would help.")),
    rows.length > 0 ? groups : emptyBox(t("No S3 request was refused since the server was started.")),
    commands("cairn refused list"),
  );
}

// A statement with a link to its policy, as the access view has it.
function statementOf(found) {
  return [
    t("statement {n} of policy", { n: found.statement + 1 }),
    " ",
    link(found.policy_name, place("policy", [found.policy_id])),
    found.matching_resource && [" · ", h("code", null, found.matching_resource)],
  ];
}

// A statement decided only if the account still has the policies of that time.
function policyDecision(right, found) {
  const values = { action: right.action, resource: right.resource };
  const then = right.denied_explicitly
    ? t("a policy of the account denies {action} on {resource}", values)
    : t("no policy of the account allows {action} on {resource}", values);
  const statement = found.statement && statementOf(found.statement);
  if (found.policies_unchanged)
    return [
      then,
      h(
        "div",
        null,
        statement ?? plural(found.policies_attached, "The account has {n} policy.", "The account has {n} policies."),
      ),
    ];
  const now = {
    denied: t("The policies of the account have changed since. Now this denies it:"),
    allowed: t("The policies of the account have changed since. Now this allows it:"),
    allowed_if_absent: t(
      "The policies of the account have changed since. Now this allows it for keys without an object:",
    ),
    no_statement: t("The policies of the account have changed since. Now none of them allows it."),
    account_deleted: t("The account was deleted since."),
  }[found.decision_now];
  return [then, now && h("div", null, now, " ", statement)];
}

function quotaUse(found) {
  const { bytes, objects } = found;
  return [
    bytes &&
      bytes.limit !== null &&
      h("div", null, t("{used} of {limit} used", { used: size(bytes.used), limit: size(bytes.limit) })),
    objects &&
      objects.limit !== null &&
      h("div", null, t("{used} of {limit} objects", { used: count(objects.used), limit: count(objects.limit) })),
  ];
}

function lockOf(found) {
  return (
    found.version_id &&
    h(
      "div",
      null,
      found.mode && t("{mode} until {date}", { mode: found.mode, date: exactDate(found.retain_until) }),
      found.mode && found.legal_hold && ", ",
      found.legal_hold && t("legal hold"),
      " · ",
      h("code", null, found.version_id),
    )
  );
}

function corsRules(found) {
  if (found.not_allowed === "bucket") return t("the bucket does not exist");
  if (found.rules === 0) return t("the bucket has no CORS rules");
  return (
    {
      origin: t("no CORS rule of the bucket allows the origin"),
      method: t("no CORS rule that allows the origin allows the method"),
      headers: t("no CORS rule that allows origin and method allows all the headers"),
    }[found.not_allowed] ?? t("the CORS rules of the bucket")
  );
}

function credentialOf(found) {
  return (
    {
      account_disabled: t("the account of the credential is disabled"),
      credential_disabled: t("the credential is disabled"),
      credential_expired: t("the credential has expired"),
    }[found.credential] ?? t("the signature, or its credential")
  );
}

// The same words as the command line has.
function decision(row) {
  const found = row.decided_by;
  if (row.right) return policyDecision(row.right, found);
  return (
    {
      authentication: () => credentialOf(found),
      policy: () => t("the policies of the account"),
      quota: () => [t("the quota of the bucket"), quotaUse(found)],
      object_lock: () => [t("retention or a legal hold"), lockOf(found)],
      cors_rules: () => corsRules(found),
      not_implemented: () => t("the server does not implement it"),
      storage: () => t("the store has no room"),
      request: () => [t("the request is not valid"), found.argument && [" · ", h("code", null, found.argument)]],
    }[row.refused_by]?.() ?? t("the request is not valid")
  );
}

// A key of the configuration. What would help is a value or a sentence of the server, and not translated.
function settingOf(setting) {
  return (
    setting && [
      h("code", null, `${setting.name} = ${setting.value || t("not set")}`),
      h("div", { class: "muted small" }, t("what would help: {value}", { value: setting.would_help })),
    ]
  );
}

async function showOne(view, id) {
  const row = await api.get(`/api/v1/refused-requests/${encodeURIComponent(id)}`);
  fill(
    view,
    viewHead(row.request_id, {
      path: link(t("Refused requests"), place("refused")),
      sign: "ban",
      tags: tag(row.code, "warn"),
    }),
    facts([
      [t("What helps"), row.advice ? said(row.advice) : t("The answer says what to change.")],
      [
        t("Answer"),
        h(
          "span",
          { lang: "en" },
          [row.status, [row.code, row.message].filter(Boolean).join(": ")].filter(Boolean).join(" "),
        ),
      ],
      [t("Decided by"), decision(row)],
      [t("Setting"), settingOf(row.setting)],
      [t("Requested"), [h("code", null, row.operation ?? row.method), " ", resource(row)]],
      [t("Principal"), row.principal ?? t("nobody was authenticated")],
      [t("Access key"), row.access_key],
      [t("Client"), [row.client, row.user_agent && h("div", { class: "muted small" }, row.user_agent)]],
      [t("Time"), timeCell(row.time)],
    ]),
    h("p", null, link(t("Look for it in the activity"), place("activity", [], { text: row.request_id }))),
    commands(`cairn explain ${quoted(row.request_id)}`),
  );
}

export async function show(view, { parts }) {
  await loadInto(view, () => (parts[0] ? showOne(view, parts[0]) : showAll(view)));
}
