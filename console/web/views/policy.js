// One policy: its statements as a form with sentences, or as JSON, and what a change would change.

import { api } from "../lib/api.js";
import { rightsChoices, templateStatements } from "../lib/application.js";
import { ask, refuse, wrong } from "../lib/dialogs.js";
import { fill, h } from "../lib/dom.js";
import { guard } from "../lib/forms.js";
import { icon } from "../lib/icons.js";
import { go, place, staying } from "../lib/navigation.js";
import { actionNames, changes, formOf, PREFIX, sentence, statementOf } from "../lib/policy-words.js";
import { mayAdminister } from "../lib/session.js";
import { count, plural, t } from "../lib/text.js";
import {
  button,
  card,
  commands,
  field,
  iconButton,
  link,
  notice,
  noticeError,
  quoted,
  select,
  tag,
  viewHead,
} from "../lib/ui.js";

const MEMBERS = new Set(["effect", "actions", "resources", "only_if_absent", "source_ip"]);

const emptyStatement = () => ({ effect: "allow", actions: [], places: [], onlyIfAbsent: false, networks: [] });
const isFilled = ({ actions, places }) => actions.length > 0 && places.length > 0;
const jsonOf = (statements) => JSON.stringify(statements.map(statementOf), null, 2);

async function choosePattern(buckets) {
  const rights = select(
    rightsChoices().map(([id, name, text]) => [id, `${name}: ${text}`]),
    "read-write",
  );
  const bucket = select(buckets.map(({ name }) => [name, name]));
  const prefix = h("input", { type: "text", spellcheck: "false" });
  return ask({
    title: t("Start from a pattern"),
    action: t("Add statements"),
    content: [
      field(t("What may it do?"), rights),
      field(t("Bucket"), bucket),
      field(t("Only in this folder"), prefix, t("Empty: the whole bucket.")),
    ],
    submit: async () => templateStatements(rights.value, bucket.value, prefix.value).map(formOf),
  });
}

// The chips of a list, with a field that adds one.
function chips({ label, add, values, name, names, changed }) {
  const input = h("input", {
    name,
    type: "text",
    "aria-label": label,
    placeholder: add,
    list: names,
    spellcheck: "false",
    autocomplete: "off",
    onchange: () => take(),
    onkeydown: (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      take();
    },
  });
  const list = h("span", { class: "chips" });
  const take = () => {
    for (const one of input.value.split(/[,\s]+/).map((text) => text.replace(PREFIX, "")))
      if (one && !values.includes(one)) values.push(one);
    input.value = "";
    drawChips();
    changed();
  };
  const drawChips = () =>
    fill(
      list,
      values.map((value, index) =>
        h(
          "span",
          { class: "chip" },
          h("code", null, value),
          mayAdminister() &&
            iconButton("close", t("Remove {name}", { name: value }), () => {
              values.splice(index, 1);
              drawChips();
              changed();
              input.focus();
            }),
        ),
      ),
    );
  drawChips();
  return h("div", { class: "chip-row" }, list, mayAdminister() && input);
}

function statementCard(statement, index, { changed, remove }) {
  const words = h("p");
  const sign = h("span");
  const tell = () => {
    fill(words, sentence(statement));
    fill(sign, icon(statement.effect === "allow" ? "done" : "ban"));
    onlyNew.hidden = statement.effect !== "allow" || !statement.actions.includes("s3:PutObject");
    whole.classList.toggle("denies", statement.effect === "deny");
  };
  const update = () => {
    tell();
    changed();
  };
  const mayEdit = mayAdminister();
  const effect = (value, name, mark) =>
    h(
      "label",
      null,
      h("input", {
        type: "radio",
        name: `effect-${index}`,
        value,
        checked: statement.effect === value,
        disabled: !mayEdit,
        onchange: () => {
          statement.effect = value;
          update();
        },
      }),
      icon(mark),
      name,
    );
  const action = ([id, name]) =>
    h(
      "label",
      { class: "chip toggle" },
      h("input", {
        type: "checkbox",
        checked: statement.actions.includes(id),
        disabled: !mayEdit,
        onchange: (event) => {
          statement.actions = actionNames()
            .map(([one]) => one)
            .filter((one) => (one === id ? event.target.checked : statement.actions.includes(one)));
          update();
        },
      }),
      name,
    );
  const onlyNew = h(
    "label",
    { class: "check" },
    h("input", {
      type: "checkbox",
      checked: statement.onlyIfAbsent,
      disabled: !mayEdit,
      onchange: (event) => {
        statement.onlyIfAbsent = event.target.checked;
        update();
      },
    }),
    t("Write new objects only: nothing is overwritten"),
  );
  const title = t("Statement {n}", { n: index + 1 });
  const whole = h(
    "section",
    { class: "card statement", "aria-label": title },
    h(
      "header",
      null,
      h("h3", null, title),
      h("span", { class: "switch" }, effect("allow", t("Allow"), "check"), effect("deny", t("Deny"), "ban")),
      mayEdit && iconButton("trash", t("Remove statement {n}", { n: index + 1 }), remove),
    ),
    h(
      "div",
      { class: "line-of" },
      h("span", { class: "muted" }, t("to")),
      h("span", { class: "chips" }, actionNames().map(action)),
    ),
    h(
      "div",
      { class: "line-of" },
      h("span", { class: "muted" }, t("on")),
      chips({
        label: t("Bucket or folder of statement {n}", { n: index + 1 }),
        add: t("bucket, bucket/* or bucket/folder/*"),
        values: statement.places,
        name: "resources",
        names: "bucket-names",
        changed: update,
      }),
    ),
    h(
      "div",
      { class: "line-of" },
      h("span", { class: "muted" }, t("only if")),
      h(
        "div",
        null,
        chips({
          label: t("Network of statement {n}", { n: index + 1 }),
          add: t("from an address, such as 10.0.0.0/8"),
          values: statement.networks,
          name: "source_ip",
          changed: update,
        }),
        onlyNew,
      ),
    ),
    h("footer", null, sign, words),
  );
  tell();
  return whole;
}

export async function show(view, { parts: [id], parameters }) {
  const isNew = id === "new";
  const [policies, { buckets }, { service_accounts: accounts }] = await Promise.all([
    isNew ? null : api.get("/api/v1/policies"),
    api.get("/api/v1/buckets"),
    api.get("/api/v1/service-accounts"),
  ]);
  const saved = isNew
    ? { name: "", description: "", statements: [], attached_to: [] }
    : policies.policies.find((policy) => policy.id === id);
  if (!saved) await api.get(`/api/v1/policies/${encodeURIComponent(id)}`);
  const before = saved.statements.map(formOf);
  const fresh = () => ({ name: saved.name, description: saved.description, statements: structuredClone(before) });
  const draft = fresh();
  if (isNew && draft.statements.length === 0) {
    const bucket = parameters.get("bucket");
    draft.statements = bucket ? templateStatements("read-only", bucket, "").map(formOf) : [emptyStatement()];
  }
  const mayEdit = mayAdminister();
  const name = h("input", {
    name: "name",
    type: "text",
    required: true,
    maxlength: 128,
    autocomplete: "off",
    value: draft.name,
    disabled: !mayEdit,
  });
  const description = h("input", {
    name: "description",
    type: "text",
    maxlength: 1024,
    value: draft.description,
    disabled: !mayEdit,
  });
  const json = h("textarea", {
    rows: 20,
    spellcheck: "false",
    "aria-label": t("Statements as JSON"),
    readonly: !mayEdit,
  });
  const problem = h("div", { "aria-live": "assertive" });
  const list = h("div", { class: "statements" });
  const effects = h("div");
  const changedTag = h("span", null);
  const save = button("", () => submit(), "main");
  const discard = button(t("Discard"), () => {
    unguard();
    if (isNew) return go("policies");
    Object.assign(draft, fresh());
    name.value = draft.name;
    description.value = draft.description;
    drawStatements();
    unguard = guardInput();
  });
  let isJson = parameters.get("json") === "1";

  const number = () =>
    Number(draft.name !== saved.name) +
    Number(draft.description !== saved.description) +
    Math.max(draft.statements.length, before.length) -
    draft.statements.filter((one, index) => before[index] && jsonOf([one]) === jsonOf([before[index]])).length;

  function changed() {
    const changesMade = number();
    fill(changedTag, changesMade > 0 && tag(t("Changed, not saved"), "warn", "edit"));
    fill(save, icon("check"), isNew ? t("Create policy") : plural(changesMade, "Save {n} change", "Save {n} changes"));
    save.disabled = changesMade === 0;
    discard.hidden = changesMade === 0;
    const made = changes(before.filter(isFilled), draft.statements.filter(isFilled));
    const who = accounts.filter(({ id: one }) => saved.attached_to.includes(one)).map((account) => account.name);
    const subject = who.length > 0 ? who.slice(0, 3).join(", ") + (who.length > 3 ? " …" : "") : t("Whoever has it");
    fill(
      effects,
      card(
        t("What changes when you save"),
        null,
        h(
          "ul",
          { class: "plan" },
          made
            .slice(0, 20)
            .map((one) =>
              h(
                "li",
                { class: one.isMore ? "" : "less" },
                icon(one.isMore ? "plus" : "close"),
                h("div", null, h("b", null, subject), " ", one.text),
              ),
            ),
          made.length > 20 && h("li", null, t("and {n} more", { n: count(made.length - 20) })),
          made.length === 0 && h("li", null, icon("check"), t("Nothing that anybody may do.")),
        ),
        h(
          "p",
          { class: "hint" },
          who.length > 0
            ? plural(
                who.length,
                "{n} account has this policy. A change is in force for its next request.",
                "{n} accounts have this policy. A change is in force for their next request.",
              )
            : t("No account has this policy yet."),
        ),
      ),
    );
  }

  function drawStatements(focused) {
    if (isJson) {
      json.value = jsonOf(draft.statements);
      fill(list, json);
    } else
      fill(
        list,
        draft.statements.map((statement, index) =>
          statementCard(statement, index, {
            changed,
            remove: () => {
              draft.statements.splice(index, 1);
              drawStatements();
            },
          }),
        ),
        mayEdit &&
          h(
            "p",
            { class: "row" },
            button([icon("plus"), t("Add a statement")], () => {
              draft.statements.push(emptyStatement());
              drawStatements(draft.statements.length - 1);
            }),
            buckets.length > 0 &&
              button(
                t("Start from a pattern"),
                async () => {
                  const made = await choosePattern(buckets);
                  if (!made) return;
                  draft.statements = [...draft.statements.filter(isFilled), ...made];
                  drawStatements();
                },
                "quiet",
              ),
          ),
      );
    if (focused !== undefined) list.querySelectorAll(".statement input")[focused]?.focus();
    changed();
  }

  // Takes what is in the field of JSON. Throws if it is not a list of statements.
  function takeJson() {
    if (!isJson) return;
    const read = JSON.parse(json.value);
    if (!Array.isArray(read)) throw new Error(t("The JSON must be a list of statements."));
    for (const one of read) {
      const other = Object.keys(one).find((name) => !MEMBERS.has(name));
      if (other) throw new Error(t("{name} is no part of a statement.", { name: other }));
      if (one.resources?.some((resource) => !String(resource).startsWith(PREFIX)))
        throw new Error(t("Resources begin with {text}", { text: PREFIX }));
    }
    draft.statements = read.map((one) =>
      formOf({ ...one, actions: one.actions ?? [], resources: one.resources ?? [] }),
    );
  }

  function tell(error) {
    // The server counts the statements that it was sent.
    const [, index] = /^statements\[(\d+)\]/.exec(error.message) ?? [];
    const at = index && draft.statements.indexOf(draft.statements.filter(isFilled)[index]);
    refuse((at && list.children[at]) || view, problem, error);
    problem.firstElementChild?.classList.add("problem");
  }

  async function submit() {
    const isHere = staying();
    fill(problem);
    save.disabled = true;
    try {
      takeJson();
      if (!name.value.trim()) throw wrong(name, t("Give the policy a name."));
      const half = draft.statements.findIndex(
        (one) => !isFilled(one) && (one.actions.length > 0 || one.places.length > 0),
      );
      // To leave it out would change what the others allow or forbid.
      if (half >= 0)
        throw wrong(
          list.children[half]?.querySelector(
            draft.statements[half].places.length > 0 ? "[type=checkbox]" : "[type=text]",
          ),
          t("Statement {n} has no action or no place.", { n: half + 1 }),
        );
      const body = {
        name: name.value.trim(),
        description: description.value,
        statements: draft.statements.filter(isFilled).map(statementOf),
      };
      if (isNew) await api.post("/api/v1/policies", body);
      else await api.put(`/api/v1/policies/${id}`, body);
      unguard();
      notice(t("Policy {name} is saved.", { name: body.name }));
      if (isHere()) go("policies");
    } catch (error) {
      if (!isHere()) return noticeError(error);
      tell(error);
      save.disabled = false;
    }
  }
  name.addEventListener("input", () => {
    draft.name = name.value;
    changed();
  });
  description.addEventListener("input", () => {
    draft.description = description.value;
    changed();
  });
  json.addEventListener("input", () => {
    save.disabled = false;
  });
  const mode = (value, text) =>
    h(
      "label",
      null,
      h("input", {
        type: "radio",
        name: "mode",
        checked: isJson === value,
        onchange: (event) => {
          try {
            takeJson();
            fill(problem);
            isJson = value;
            drawStatements();
          } catch (error) {
            tell(error);
            event.target.closest(".switch").querySelectorAll("input")[1].checked = true;
          }
        },
      }),
      text,
    );
  fill(
    view,
    viewHead(isNew ? t("New policy") : saved.name, {
      path: link(t("Policies"), place("policies")),
      sign: "shield",
      stone: 3,
      tags: [
        changedTag,
        saved.attached_to.length > 0 &&
          tag(plural(saved.attached_to.length, "{n} account", "{n} accounts"), "", "plug"),
      ],
      actions: mayEdit && [discard, save],
    }),
    problem,
    h(
      "datalist",
      { id: "bucket-names" },
      buckets
        .slice(0, 200)
        .map((bucket) => [h("option", { value: bucket.name }), h("option", { value: `${bucket.name}/*` })]),
    ),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        null,
        h("section", { class: "card pair" }, field(t("Name"), name), field(t("Description"), description)),
        h(
          "div",
          { class: "row" },
          h("h2", null, t("Statements")),
          h("span", { class: "switch end" }, mode(false, t("Form")), mode(true, "JSON")),
        ),
        list,
      ),
      h("div", null, effects),
    ),
    commands(
      ...(isNew
        ? ["cairn policy create --template read-write --bucket BUCKET"]
        : [`cairn policy show ${quoted(id)}`, `cairn policy update ${quoted(id)} policy.json`]),
    ),
  );
  drawStatements();
  const entered = () => JSON.stringify([name.value, description.value, isJson ? json.value : jsonOf(draft.statements)]);
  const guardInput = () => {
    const before = entered();
    return guard(name, () => entered() !== before);
  };
  let unguard = guardInput();
}
