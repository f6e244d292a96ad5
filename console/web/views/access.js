// May an account do something, and which statement decides? The question is in the URL, so that it can be linked.

import { api } from "../lib/api.js";
import { h } from "../lib/dom.js";
import { go, place } from "../lib/navigation.js";
import { effectTag, restrictions, statementList } from "../lib/statements.js";
import { t } from "../lib/text.js";
import {
  button,
  commands,
  copyText,
  emptyBox,
  errorBox,
  facts,
  field,
  link,
  loadInto,
  quoted,
  select,
  tag,
  viewHead,
} from "../lib/ui.js";

const OF_BUCKETS = ["s3:ListBucket", "s3:ManageBucket"];
// More names do not help anyone who types one.
const SUGGESTED_MAX = 500;

const actions = () => [
  ["s3:GetObject", t("read an object (s3:GetObject)")],
  ["s3:PutObject", t("write an object (s3:PutObject)")],
  ["s3:DeleteObject", t("delete an object (s3:DeleteObject)")],
  ["s3:ListBucket", t("list a bucket (s3:ListBucket)")],
  ["s3:ManageBucket", t("create, delete and configure a bucket (s3:ManageBucket)")],
];

const REASONS = {
  allowed: () => t("A statement allows it, and none denies it."),
  denied: () => t("A statement denies it, which overrides every other one."),
  no_statement: () => t("No statement allows it, and what is not allowed is denied."),
  root: () => t("The root credential may do everything."),
  root_disabled: () => t("The root credential is not accepted for S3."),
  account_disabled: () => t("The account is turned off."),
  credential_disabled: () => t("The credential is turned off."),
  credential_expired: () => t("The credential has expired."),
};

function applied(statement) {
  return h(
    "li",
    null,
    effectTag(statement.effect),
    " ",
    t("statement {n} of policy", { n: statement.statement + 1 }),
    " ",
    link(statement.policy_name, place("policy", [statement.policy_id])),
    ": ",
    h("code", null, statement.actions.join(", ")),
    " · ",
    h("code", null, statement.matching_resource),
    restrictions(statement),
  );
}

function verdict(answer) {
  const suggested = answer.would_allow && JSON.stringify([answer.would_allow], null, 2);
  return h(
    "section",
    { class: "card", "aria-label": t("Answer") },
    h(
      "p",
      { role: "status" },
      tag(answer.allowed ? t("allowed") : t("denied"), answer.allowed ? "good" : "bad"),
      " ",
      REASONS[answer.reason]?.() ?? answer.reason,
    ),
    answer.decided_by && h("ul", null, applied(answer.decided_by)),
    answer.reason.endsWith("disabled") && answer.decided_by && h("p", null, t("Its policies are shown all the same.")),
    answer.reason === "denied" &&
      h("p", null, t("To allow it, detach this policy from the account, or replace it by one without the statement.")),
    answer.also_applying.length > 0 &&
      h(
        "details",
        null,
        h("summary", null, t("Other statements that apply")),
        h("ul", null, answer.also_applying.map(applied)),
        answer.also_applying_omitted > 0 &&
          h("p", { class: "muted" }, t("and {n} more", { n: answer.also_applying_omitted })),
      ),
    suggested && [
      h("p", null, t("This statement would allow it, in a policy that is attached to the account:")),
      h("pre", { class: "mono", tabindex: "0" }, suggested),
      button(t("Copy statement"), () => copyText(suggested)),
    ],
  );
}

function questionForm({ who, action, bucket, key }, accounts) {
  const accountInput = h("input", {
    type: "text",
    required: true,
    value: who,
    list: "account-names",
    autocomplete: "off",
    spellcheck: "false",
  });
  const names = h(
    "datalist",
    { id: "account-names" },
    accounts.slice(0, SUGGESTED_MAX).map(({ name }) => h("option", { value: name })),
  );
  const actionSelect = select(actions(), action);
  const bucketInput = h("input", {
    type: "text",
    required: true,
    value: bucket,
    spellcheck: "false",
    autocomplete: "off",
  });
  // A text area, because keys may have line breaks.
  const keyInput = h("textarea", { rows: 1, spellcheck: "false", value: key });
  const keyField = field(t("Key"), keyInput, t("Exactly as it is, without a pattern."));
  const update = () => {
    keyField.hidden = OF_BUCKETS.includes(actionSelect.value);
  };
  actionSelect.addEventListener("change", update);
  update();
  return h(
    "form",
    {
      class: "card",
      onsubmit: (event) => {
        event.preventDefault();
        go("access", [], {
          who: accountInput.value.trim(),
          action: actionSelect.value,
          bucket: bucketInput.value.trim(),
          key: keyField.hidden ? undefined : keyInput.value,
        });
      },
    },
    field(t("Account or access key"), accountInput),
    names,
    field(t("May it …"), actionSelect),
    field(t("Bucket"), bucketInput),
    keyField,
    h("button", { type: "submit", class: "main" }, t("Check")),
  );
}

function checkCommands(asked, question, isNamed) {
  const resource = OF_BUCKETS.includes(asked.action) ? asked.bucket : `${asked.bucket}/${asked.key}`;
  const account = `${isNamed ? "--account" : "--access-key"} ${quoted(asked.who)}`;
  const body = quoted(JSON.stringify(question));
  const url = "http://127.0.0.1:7601/api/v1/access/check";
  return [
    `cairn policy check ${account} --action ${asked.action} --resource ${quoted(resource)}`,
    `curl -H "Authorization: Bearer $SERVICE_MANAGEMENT_TOKEN" -d ${body} ${url}`,
  ];
}

async function ask(question) {
  try {
    return verdict(await api.post("/api/v1/access/check", question));
  } catch (error) {
    if (error.status === 404) return emptyBox(t("No account has this name, id or access key."));
    return errorBox(error);
  }
}

export async function show(view, { parameters }) {
  await loadInto(view, async () => {
    const asked = { who: "", action: "s3:GetObject", bucket: "", key: "", ...Object.fromEntries(parameters) };
    const { service_accounts: accounts } = await api.get("/api/v1/service-accounts");
    const account = accounts.find(({ id, name, credentials }) =>
      [id, name, ...credentials.map((credential) => credential.access_key)].includes(asked.who),
    );
    const isNamed = account && !account.credentials.some((credential) => credential.access_key === asked.who);
    const isComplete = asked.who && asked.bucket && (OF_BUCKETS.includes(asked.action) || asked.key);
    const question = {
      ...(isNamed ? { account_id: account.id } : { access_key: asked.who }),
      action: asked.action,
      bucket: asked.bucket,
      ...(OF_BUCKETS.includes(asked.action) ? {} : { key: asked.key }),
    };
    const [answer, inForce] = await Promise.all([
      isComplete && ask(question),
      account && api.get(`/api/v1/service-accounts/${account.id}/policies`),
    ]);
    const lines = isComplete
      ? checkCommands(asked, question, isNamed)
      : ["cairn policy check --account ACCOUNT --action s3:GetObject --resource BUCKET/KEY"];
    return [
      viewHead(t("Who may what")),
      h("p", null, t("May an account do something, and which statement of which policy decides?")),
      questionForm({ ...asked, who: isNamed ? account.name : asked.who }, accounts),
      answer,
      account && [
        h("h2", null, t("What {name} may do", { name: account.name })),
        facts([
          [t("Account"), link(account.name, place("account", [account.id]))],
          [t("Status"), account.enabled ? t("on") : t("off")],
        ]),
        inForce.policies.length > 0
          ? statementList(inForce.policies)
          : emptyBox(t("No policies: every request is refused.")),
      ],
      commands(...lines, ...(account ? [`cairn service-account policies ${quoted(account.name)}`] : [])),
    ];
  });
}
