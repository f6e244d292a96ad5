// Connect an application: what it is, its bucket and rights; then the keys, the block to paste, and its first request.

import { api, REGION } from "../lib/api.js";
import { createApplication, rightsChoices, settingsOf } from "../lib/application.js";
import { CLIENTS } from "../lib/clients.js";
import { copyField } from "../lib/copy-field.js";
import { confirmed, refuse, wrong } from "../lib/dialogs.js";
import { fill, h } from "../lib/dom.js";
import { keptText } from "../lib/first-steps.js";
import { guardFields } from "../lib/forms.js";
import { icon, stoneOf } from "../lib/icons.js";
import { go, place } from "../lib/navigation.js";
import { quotaInput } from "../lib/quota.js";
import { size, t } from "../lib/text.js";
import {
  banner,
  button,
  card,
  commands,
  copyText,
  field,
  link,
  notice,
  noticeError,
  noticeProblem,
  quoted,
  said,
  select,
  tag,
  viewHead,
} from "../lib/ui.js";

const WAIT = 3000;
const OTHER = { name: "other", title: "", sign: "more", blocks: [] };

// A choice as a card: the radio button, a title and what it means.
function choice(group, value, isChosen, onchange, title, ...text) {
  const input = h("input", { type: "radio", name: group, value, checked: isChosen, onchange });
  return h("label", { class: "choice" }, input, h("span", null, title, text));
}

function question(number, title, ...content) {
  return h(
    "fieldset",
    { class: "question" },
    h("legend", null, h("span", { class: "number-of" }, number), title),
    content,
  );
}

const sign = (name, text, note) =>
  h("li", null, icon(name), h("div", null, h("b", null, text), h("div", { class: "muted small" }, note)));

function askWhat(view, buckets, wanted, done) {
  const state = {
    client: CLIENTS[0],
    isNew: !wanted || buckets.length === 0,
    rights: "read-write",
  };
  const name = h("input", {
    name: "name",
    type: "text",
    required: true,
    maxlength: 128,
    autocomplete: "off",
    spellcheck: "false",
  });
  const newBucket = h("input", {
    name: "bucket",
    type: "text",
    minlength: 3,
    maxlength: 63,
    autocomplete: "off",
    spellcheck: "false",
  });
  const existing = select(
    buckets.map((bucket) => [bucket.name, bucket.name]),
    wanted,
  );
  const prefix = h("input", { name: "prefix", type: "text", spellcheck: "false", placeholder: "folder/" });
  const keeps = h("input", { type: "checkbox", checked: true });
  const quota = quotaInput(null);
  const plan = h("ul", { class: "plan" });
  const sentence = h("p");
  const warning = h("div");
  const problem = h("div", { "aria-live": "assertive" });
  const bucketOf = () => (state.isNew ? newBucket.value.trim() : existing.value);
  const rightsOf = () => rightsChoices().find(([id]) => id === state.rights);
  const createButton = h("button", { type: "submit", class: "main wide" }, icon("key"), t("Create and show the key"));
  const newPart = h(
    "div",
    { class: "inner" },
    field(t("Name of the bucket"), newBucket),
    quota.element,
    h("label", { class: "check" }, keeps, keptText()),
  );
  const oldPart = h("div", { class: "inner" }, field(t("Bucket"), existing));

  function update() {
    const bucket = bucketOf();
    const shown = name.value.trim() || "…";
    const where = prefix.value
      ? t("{prefix} in {bucket}", { prefix: prefix.value, bucket: bucket || "…" })
      : bucket || "…";
    newPart.hidden = !state.isNew;
    oldPart.hidden = state.isNew;
    newBucket.required = state.isNew;
    const notes = [keeps.checked && t("versions"), t("private"), quota.bytes() && size(quota.bytes())];
    fill(
      plan,
      state.isNew && sign("bucket", t("Bucket {name}", { name: bucket || "…" }), notes.filter(Boolean).join(", ")),
      sign("plug", t("Application {name}", { name: shown }), t("an account with nothing else")),
      sign("shield", t("Policy {name}", { name: shown }), `${rightsOf()[1]}: ${where}`),
      sign("key", t("One key"), t("The secret is shown once.")),
    );
    fill(
      sentence,
      bucket &&
        name.value.trim() &&
        t("{name} gets: {rights}. It sees nothing but {where}.", { name: shown, rights: rightsOf()[1], where }),
    );
    const needs = state.client.needs;
    const fits = !needs || needs === state.rights;
    fill(
      warning,
      !fits &&
        banner(
          "warn",
          t("{name} needs the right: {rights}.", {
            name: state.client.title,
            rights: rightsChoices().find(([id]) => id === needs)[1],
          }),
        ),
    );
  }

  const form = h(
    "form",
    {
      class: "columns",
      oninput: update,
      onsubmit: async (event) => {
        event.preventDefault();
        createButton.disabled = true;
        try {
          const asked = {
            name: name.value.trim(),
            bucket: bucketOf(),
            isNew: state.isNew,
            keepsVersions: keeps.checked,
            quota: state.isNew ? quota.bytes() : null,
            prefix: prefix.value,
            rights: state.rights,
          };
          if (asked.prefix.includes("*")) throw wrong(prefix, t("A folder has no * in its name."));
          done(asked, await createApplication(asked), state.client);
        } catch (error) {
          // The policy is made first.
          if (/^statements.*resources/.test(error.message))
            error.field = error.message.includes("bucket name") ? "bucket" : "prefix";
          refuse(form, problem, error);
          createButton.disabled = false;
        }
      },
    },
    h(
      "div",
      null,
      h(
        "section",
        { class: "card" },
        question(
          1,
          t("Which application?"),
          h(
            "div",
            { class: "choices" },
            [...CLIENTS, OTHER].map((client) =>
              choice(
                "client",
                client.name,
                client === state.client,
                () => {
                  state.client = client;
                  update();
                },
                h("span", { class: `tile small-tile stone-${stoneOf(client.name)}` }, icon(client.sign)),
                client.title || t("Another one"),
              ),
            ),
          ),
          field(t("Name of the application"), name, t("Its account and its policy have this name.")),
        ),
        question(
          2,
          t("Which bucket?"),
          buckets.length > 0 &&
            h(
              "div",
              { class: "choices two" },
              choice(
                "bucket",
                "old",
                !state.isNew,
                () => {
                  state.isNew = false;
                  update();
                },
                h("b", null, t("An existing one")),
              ),
              choice(
                "bucket",
                "new",
                state.isNew,
                () => {
                  state.isNew = true;
                  update();
                },
                h("b", null, t("A new one")),
              ),
            ),
          newPart,
          oldPart,
          field(t("Only in this folder"), prefix, t("Empty: the whole bucket.")),
        ),
        question(
          3,
          t("What may it do?"),
          h(
            "div",
            { class: "choices three" },
            rightsChoices().map(([id, title, text]) =>
              choice(
                "rights",
                id,
                id === state.rights,
                () => {
                  state.rights = id;
                  update();
                },
                h("b", null, title),
                h("span", { class: "muted small" }, text),
              ),
            ),
          ),
          warning,
        ),
      ),
    ),
    h(
      "div",
      null,
      card(t("What will be made"), null, plan, sentence, problem, h("div", { class: "flow-actions" }, createButton)),
    ),
  );
  view.classList.add("flow");
  fill(
    view,
    viewHead(t("Connect an application"), {
      path: link(t("Applications"), place("accounts")),
      sign: "plug",
      actions: link(t("Cancel"), place("accounts"), { class: "button" }),
    }),
    form,
    commands("cairn app create NAME --bucket BUCKET --rights read-write --client CLIENT"),
  );
  update();
  guardFields(form);
}

// Waits for the first request with the key, and says that it came, or why it was refused.
function listen(account, accessKey, shown) {
  let timer;
  let isOver = false;
  const look = async () => {
    try {
      const { credentials } = await api.get(`/api/v1/service-accounts/${account.id}`);
      const { refused_requests: refused } = await api.get("/api/v1/refused-requests", { limit: 100 });
      const used = credentials.find((one) => one.access_key === accessKey)?.last_used_at;
      const latest = refused.find((one) => one.access_key === accessKey);
      // A request that was accepted later counts.
      const why = latest && !(used && used > latest.time) && latest;
      if (why)
        fill(
          shown,
          tag(t("Refused"), "bad"),
          h("p", null, said(why.advice ?? why.message)),
          link(t("Explain"), place("refused", [why.request_id])),
        );
      if (used && !why) {
        fill(shown, tag(t("The first request arrived"), "good"));
        return;
      }
    } catch {
      // The next look may succeed.
    }
    if (!isOver) timer = setTimeout(look, WAIT);
  };
  look();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

function showResult(view, asked, made, client, info) {
  const { access_key: accessKey, secret_key: secretKey } = made.credential;
  const endpoint = info.s3_endpoint;
  const facts = { ...asked, endpoint, isStrict: info.s3_compatibility !== "extended", accessKey, secretKey };
  const environment = {
    place: t("Environment"),
    text: [
      `export AWS_ENDPOINT_URL=${endpoint}`,
      `export AWS_REGION=${REGION}`,
      `export AWS_ACCESS_KEY_ID=${accessKey}`,
      `export AWS_SECRET_ACCESS_KEY=${secretKey}`,
    ].join("\n"),
  };
  const blocks = [...settingsOf(client, facts), environment];
  const waiting = h("div", { role: "status" }, tag(t("Waiting for its first request"), "", "clock"));
  const undo = async () => {
    const isDone = await confirmed({
      title: t("Undo"),
      text: asked.isNew
        ? t("Application, policy, key and the bucket are removed, if the bucket is still empty.")
        : t("Application, policy and key are removed."),
      action: t("Undo"),
      task: made.undoAll,
    });
    if (!isDone) return;
    notice(t("All of it was removed."));
    go("accounts");
  };
  const prefixOption = asked.prefix ? ` --prefix ${quoted(asked.prefix)}` : "";
  view.classList.remove("flow");
  fill(
    view,
    viewHead(t("{name} is ready to connect", { name: asked.name }), {
      path: link(t("Applications"), place("accounts")),
      sign: client.sign,
      actions: [
        button([icon("undo"), t("Undo")], () => undo().catch(noticeError)),
        link([icon("check"), t("Done")], place("account", [made.account.id]), { class: "button main" }),
      ],
    }),
    banner("warn", [
      h("b", null, t("The secret is shown only now.")),
      " ",
      t("If it is lost, make a new key for the same application."),
    ]),
    h(
      "div",
      { class: "columns turned" },
      h(
        "div",
        null,
        card(
          t("Connection"),
          null,
          copyField(t("Endpoint"), endpoint),
          copyField(t("Region"), REGION),
          copyField(t("Bucket"), asked.bucket),
          copyField(t("Access key"), accessKey),
          copyField(t("Secret key"), secretKey),
        ),
        card(t("It listens"), null, waiting),
      ),
      h(
        "div",
        null,
        blocks.map((block) =>
          card(
            [client.title && block !== environment ? `${client.title}: ` : "", block.place],
            button([icon("copy"), t("Copy block")], () => copyText(block.text)),
            h("pre", { class: "mono block", tabindex: "0", "aria-label": block.place }, block.text),
          ),
        ),
      ),
    ),
    commands(
      `cairn app create ${quoted(asked.name)} --bucket ${quoted(asked.bucket)}${prefixOption} --rights ${asked.rights}`,
      `cairn service-account show ${made.account.id}`,
    ),
  );
  view.querySelector("h1").focus();
  scrollTo(0, 0);
  return listen(made.account, accessKey, waiting);
}

// The user has left while the application was made.
async function takeBack({ name }, { undoAll }) {
  try {
    await undoAll();
    noticeProblem(t("{name} was not connected: its key was not shown.", { name }));
  } catch (error) {
    noticeError(error);
  }
}

export async function show(view, { parameters }) {
  const [{ buckets }, info] = await Promise.all([api.get("/api/v1/buckets"), api.get("/api/v1/system/info")]);
  let leave;
  let isOver = false;
  const wanted = parameters.get("bucket");
  askWhat(view, buckets, buckets.some(({ name }) => name === wanted) ? wanted : null, (asked, made, client) => {
    // Nobody has seen the secret.
    if (isOver) return takeBack(asked, made);
    leave = showResult(view, asked, made, client, info);
  });
  return () => {
    isOver = true;
    leave?.();
  };
}
