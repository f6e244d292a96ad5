// Import: what to do in which order, with the commands to paste, and what has come in the runs that the server knows.

import { api } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { icon } from "../lib/icons.js";
import { reportCards, runsCard } from "../lib/imports.js";
import { go, place } from "../lib/navigation.js";
import { quotaInput } from "../lib/quota.js";
import { mayAdminister } from "../lib/session.js";
import { size, t } from "../lib/text.js";
import { banner, card, commandBlock, facts, field, link, loadInto, quoted, tag, viewHead } from "../lib/ui.js";

// Others than system administrators cannot import. They see what comes.
const stepsOf = () => (mayAdminister() ? ["source", "plan", "copy", "report"] : ["copy", "report"]);
const NAMES = { source: () => t("Source"), plan: () => t("Plan"), copy: () => t("Copy"), report: () => t("Report") };
const POLL = 3000;
const EXAMPLE = "https://minio.example.org:9000";

// The values of the form, from the URL.
function stateOf(parameters) {
  const steps = stepsOf();
  const step = steps.includes(parameters.get("step")) ? parameters.get("step") : steps[0];
  return {
    step,
    from: parameters.get("from") ?? "",
    buckets: (parameters.get("buckets") ?? "").split(/[\s,]+/).filter(Boolean),
    rate: Number(parameters.get("rate")) || null,
    archives: parameters.get("archives") === "1",
  };
}

const placeOf = (state, step) => [
  "import",
  [],
  {
    step,
    from: state.from,
    buckets: state.buckets.join(" "),
    rate: state.rate ?? "",
    archives: state.archives ? "1" : "",
  },
];

// The options that all commands share.
function optionsOf({ from, buckets }) {
  return [`--from ${quoted(from || EXAMPLE)}`, ...buckets.map((bucket) => `--bucket ${quoted(bucket)}`)].join(" ");
}

const commandsOf = (state) => ({
  plan: [
    "export SOURCE_ACCESS_KEY=… SOURCE_SECRET_KEY=…",
    `cairn import plan ${optionsOf(state)}${state.archives ? " --iam iam.zip --settings buckets.zip" : ""}`,
  ],
  archives: [
    "mc admin cluster iam export ALIAS",
    "mc admin cluster bucket export ALIAS",
    "cairn import accounts iam.zip --dry-run",
    "cairn import settings buckets.zip --dry-run",
  ],
  copy: [`cairn import objects ${optionsOf(state)}${state.rate ? ` --bytes-per-second ${state.rate}` : ""}`],
  follow: [
    `cairn import objects ${optionsOf(state)} --follow --interval 1m`,
    `cairn import objects ${optionsOf(state)} --delete`,
  ],
  verify: [`cairn import verify ${optionsOf(state)} --read all --report report.html`, "cairn verify proof report.json"],
});

function sourceStep(state) {
  const from = h("input", {
    type: "url",
    required: true,
    value: state.from,
    placeholder: EXAMPLE,
    spellcheck: "false",
    autocomplete: "off",
  });
  const buckets = h("input", {
    type: "text",
    value: state.buckets.join(" "),
    spellcheck: "false",
    autocomplete: "off",
  });
  const rate = quotaInput(state.rate, t("Bytes per second"), t("Empty: as fast as both sides can."));
  const archives = h("input", { type: "checkbox", checked: state.archives });
  const submit = (event) => {
    event.preventDefault();
    const chosen = {
      from: from.value.trim(),
      buckets: buckets.value.split(/[\s,]+/).filter(Boolean),
      rate: rate.bytes(),
      archives: archives.checked,
    };
    go(...placeOf(chosen, "plan"));
  };
  return h(
    "div",
    { class: "columns" },
    h(
      "div",
      null,
      card(
        t("Where the data is"),
        null,
        h(
          "form",
          { onsubmit: submit },
          field(t("Address of the source"), from, t("As its S3 clients use it, without credentials.")),
          field(t("Buckets"), buckets, t("Names with spaces between. Empty: all that the credential may list.")),
          rate.element,
          h("label", { class: "check" }, archives, t("It is MinIO, and accounts and settings come along, too")),
          h(
            "div",
            { class: "row flow-actions" },
            h("button", { type: "submit", class: "main" }, t("Continue to the plan")),
          ),
        ),
      ),
    ),
    h(
      "div",
      null,
      card(
        t("How it works"),
        null,
        h(
          "ul",
          { class: "plan" },
          [
            ["eye", t("The source stays untouched"), t("It is only read. Its clients can go on meanwhile.")],
            ["shell", t("A program copies"), t("It runs where it reaches both servers. This page makes its commands.")],
            [
              "key",
              t("Credentials stay with the program"),
              t("They are never typed here, and are not sent to this server."),
            ],
            ["retry", t("It can be interrupted"), t("What is here already is not copied again.")],
          ].map(([sign, title, note]) =>
            h("li", null, icon(sign), h("div", null, h("b", null, title), h("div", { class: "muted small" }, note))),
          ),
        ),
      ),
    ),
  );
}

function planStep(state, status) {
  const lines = commandsOf(state);
  return [
    banner("warn", t("The program makes the plan where you run it: this server never sees the source.")),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        null,
        card(
          t("Make the plan"),
          null,
          h(
            "p",
            null,
            t(
              "It names what would not come first, then counts what comes, and estimates time and space. It changes nothing.",
            ),
          ),
          commandBlock(...lines.plan),
        ),
        state.archives &&
          card(
            t("Accounts and settings"),
            null,
            h("p", null, t("MinIO exports them as two archives. Both commands first say what they would do.")),
            commandBlock(...lines.archives),
          ),
      ),
      h(
        "div",
        null,
        card(
          t("What never comes along"),
          null,
          h(
            "ul",
            { class: "plan" },
            [
              t("Versions that need a key of the client to be decrypted"),
              t("Unfinished uploads, and declared checksums of objects"),
              t("Milliseconds of dates in lists of S3"),
              t("Settings of buckets and accounts, unless their archives are imported"),
            ].map((text) => h("li", { class: "less" }, icon("ban"), h("div", null, text))),
          ),
        ),
        card(
          t("Space here"),
          null,
          facts([
            [t("Free"), size(status.available_bytes)],
            [t("Capacity"), size(status.capacity_bytes)],
          ]),
          h("p", { class: "hint" }, t("Compare it with what the plan needs.")),
        ),
      ),
    ),
  ];
}

function copyStep(state, runs) {
  const lines = commandsOf(state);
  return h(
    "div",
    { class: "columns" },
    h("div", null, runs),
    h(
      "div",
      null,
      card(
        t("Copy"),
        null,
        h("p", null, t("Stop it with Ctrl-C, and start it again whenever you like.")),
        commandBlock(...lines.copy),
      ),
      card(
        t("Follow, then copy a last time"),
        null,
        h(
          "p",
          null,
          t("Follow the changes until little is left. Then stop the clients, and copy a last time with deletions."),
        ),
        commandBlock(...lines.follow),
      ),
    ),
  );
}

function reportStep(state, reports) {
  const lines = commandsOf(state);
  const next = [
    t("Point the applications to this server"),
    t("Give accounts with new secrets their keys"),
    t("Make a backup of this server"),
    t("Keep the old server for a while, without writes"),
  ];
  return h(
    "div",
    { class: "columns" },
    h("div", null, reports),
    h(
      "div",
      null,
      card(
        t("Compare both sides"),
        null,
        h(
          "p",
          null,
          t("Ids, dates, sizes, metadata, tags and locks, and every byte. This server signs what the program found."),
        ),
        commandBlock(...lines.verify),
      ),
      mayAdminister() &&
        card(
          t("What to do next"),
          null,
          next.map((text) => h("label", { class: "check" }, h("input", { type: "checkbox" }), text)),
          h("p", { class: "row" }, link(t("Backups"), place("backups"), { class: "button" })),
        ),
    ),
  );
}

export async function show(view, { parameters }) {
  const state = stateOf(parameters);
  const steps = stepsOf();
  const index = steps.indexOf(state.step);
  const runs = h("div", { class: "stack" });
  const reports = h("div", { class: "stack" });
  const status = state.step === "plan" ? await api.get("/api/v1/storage/status") : null;
  const body = {
    source: () => sourceStep(state),
    plan: () => planStep(state, status),
    copy: () => copyStep(state, runs),
    report: () => reportStep(state, reports),
  }[state.step]();
  const shortened = state.from.replace(/^https?:\/\//, "");
  view.classList.add("flow");
  fill(
    view,
    viewHead(shortened ? t("Import from {name}", { name: shortened }) : t("Import"), {
      sign: "import",
      tags: state.step !== "source" && tag(t("Source stays untouched"), "good", "eye"),
      actions: [
        index > 0 && link(t("Back"), place(...placeOf(state, steps[index - 1])), { class: "button" }),
        index > 0 &&
          index < steps.length - 1 &&
          link(
            [t("Continue: {step}", { step: NAMES[steps[index + 1]]() }), icon("arrow")],
            place(...placeOf(state, steps[index + 1])),
            {
              class: "button main",
            },
          ),
      ],
      tabs: steps.map((step, number) => [
        [
          h(
            "span",
            { class: number < index ? "number-of over" : "number-of" },
            number < index ? icon("check") : number + 1,
          ),
          NAMES[step](),
        ],
        place(...placeOf(state, step)),
        step === state.step,
      ]),
    }),
    !mayAdminister() && banner("warn", t("Only a system administrator can import. You see what comes.")),
    body,
  );
  if (state.step === "source" || state.step === "plan") return undefined;
  let timer;
  let isOver = false;
  let before = null;
  const target = state.step === "copy" ? runs : reports;
  const read = async () => {
    // After a failure, nothing of it is shown.
    const previous = before;
    before = null;
    const found = await api.get("/api/v1/imports");
    if (isOver) return undefined;
    clearTimeout(timer);
    timer = setTimeout(next, POLL);
    before = { at: Date.now(), imports: found.imports, text: JSON.stringify(found) };
    // What somebody uses stays, as long as nothing changes.
    if (before.text === previous?.text && target.contains(document.activeElement)) return undefined;
    return state.step === "copy" ? runsCard(found, previous, again) : reportCards(found);
  };
  // The focus stays on the button of a run.
  const again = async () => {
    const { run } = document.activeElement?.dataset ?? {};
    await loadInto(target, read);
    if (run && document.activeElement === document.body) target.querySelector(`[data-run="${run}"]`)?.focus();
  };
  // A chart that somebody reads does not change.
  const next = () => {
    if (document.hidden) later();
    else if (target.querySelector(".chart svg:is(:hover, :focus)")) timer = setTimeout(next, POLL);
    else again();
  };
  // A hidden page asks for nothing.
  const later = () => document.addEventListener("visibilitychange", () => isOver || again(), { once: true });
  await again();
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
