// One service account: credentials, policies, and whether it may do something.

import { api } from "../lib/api.js";
import { ask, confirmed } from "../lib/dialogs.js";
import { fill, h } from "../lib/dom.js";
import { icon, stoneOf } from "../lib/icons.js";
import { draw, go, place } from "../lib/navigation.js";
import { secretDialog } from "../lib/secrets.js";
import { mayAdminister } from "../lib/session.js";
import { statementList } from "../lib/statements.js";
import { t } from "../lib/text.js";
import {
  acting,
  actionsColumn,
  button,
  commands,
  emptyBox,
  facts,
  field,
  link,
  noticeError,
  quoted,
  select,
  table,
  tag,
  timeCell,
  viewHead,
} from "../lib/ui.js";

export async function show(view, { parts: [id] }) {
  const path = `/api/v1/service-accounts/${id}`;
  const [account, { policies }, inForce] = await Promise.all([
    api.get(path),
    api.get("/api/v1/policies"),
    api.get(`${path}/policies`),
  ]);
  const act = (task) => acting(task, draw);
  const remove = act(async () => {
    const text = t("Its credentials stop working at once.");
    if (
      await confirmed({
        title: t("Delete account {name}", { name: account.name }),
        text,
        action: t("Delete account"),
        name: account.name,
      })
    ) {
      await api.remove(path);
      go("accounts");
    }
  });
  const temporary = async () => {
    const lasts = select(
      [
        ["3600", t("an hour")],
        ["86400", t("a day")],
        ["604800", t("a week")],
      ],
      "3600",
    );
    const made = await ask({
      title: t("Temporary credential"),
      action: t("Create credential"),
      content: field(t("Valid for"), lasts),
      submit: () => api.post(`${path}/temporary-credentials`, { expires_in_seconds: Number(lasts.value) }),
    });
    if (made) await secretDialog(made.credential).then(draw);
  };
  const attach = async () => {
    const free = policies.filter((policy) => !account.policies.some((attached) => attached.id === policy.id));
    const choice = select(free.map((policy) => [policy.id, policy.name]));
    (await ask({
      title: t("Attach a policy"),
      action: t("Attach"),
      content: field(t("Policy"), choice),
      submit: () => api.put(`/api/v1/policies/${choice.value}/bindings/${id}`),
    })) && draw();
  };
  const credentials = table(
    t("Credentials"),
    [
      {
        name: t("Access key"),
        cell: (row) => [
          h("code", null, row.access_key),
          " ",
          !row.enabled && tag(t("off"), "warn"),
          " ",
          row.temporary && tag(t("temporary")),
        ],
      },
      { name: t("Last used"), from: "medium", cell: (row) => timeCell(row.last_used_at, true) },
      { name: t("Expires"), from: "medium", cell: (row) => timeCell(row.expires_at) },
      actionsColumn(
        (row) =>
          mayAdminister() && [
            button(
              row.enabled ? t("Turn off") : t("Turn on"),
              act(() => api.put(`${path}/credentials/${row.id}/status`, { enabled: !row.enabled })),
              "link",
            ),
            button(
              t("Delete"),
              act(async () => {
                if (
                  await confirmed({
                    title: t("Delete credential"),
                    text: t("Applications that use it are refused at once."),
                    action: t("Delete credential"),
                  })
                )
                  await api.remove(`${path}/credentials/${row.id}`);
              }),
              "link danger",
            ),
          ],
      ),
    ],
    account.credentials,
  );
  const attached = table(
    t("Policies"),
    [
      { name: t("Policy"), cell: (row) => link(row.name, place("policy", [row.id])) },
      actionsColumn(
        (row) =>
          mayAdminister() &&
          button(
            t("Detach"),
            act(() => api.remove(`/api/v1/policies/${row.id}/bindings/${id}`)),
            "link",
          ),
      ),
    ],
    account.policies,
  );
  fill(
    view,
    viewHead(account.name, {
      path: link(t("Applications"), place("accounts")),
      sign: "plug",
      stone: stoneOf(account.name),
      tags: tag(account.enabled ? t("on") : t("off"), account.enabled ? "good" : "warn"),
      actions: mayAdminister() && [
        button(t("Temporary credential"), temporary),
        policies.length > account.policies.length && button(t("Attach a policy"), attach),
        button(
          [icon("key"), t("Add credential")],
          async () => {
            try {
              await secretDialog((await api.post(`${path}/credentials`)).credential);
              draw();
            } catch (error) {
              noticeError(error);
            }
          },
          "main",
        ),
      ],
    }),
    facts([
      [t("Description"), account.description],
      [t("Created"), timeCell(account.created_at)],
    ]),
    h("h2", null, t("Credentials")),
    account.credentials.length > 0 ? credentials : emptyBox(t("No credentials.")),
    h("h2", null, t("Policies")),
    account.policies.length > 0 ? attached : emptyBox(t("No policies: every request is refused.")),
    h("h2", null, t("What it may do")),
    h("p", null, link(t("Check access to a bucket or an object"), place("access", [], { who: account.name }))),
    account.policies.length > 0 && statementList(inForce.policies),
    mayAdminister() && [
      h("h2", null, t("Turn off or delete")),
      h(
        "p",
        { class: "row" },
        button(
          account.enabled ? t("Turn off") : t("Turn on"),
          act(() => api.put(`${path}/status`, { enabled: !account.enabled })),
        ),
        button([icon("trash"), t("Delete account")], remove, "danger"),
      ),
    ],
    commands(
      `cairn service-account show ${quoted(account.id)}`,
      `cairn service-account policies ${quoted(account.id)}`,
    ),
  );
}
