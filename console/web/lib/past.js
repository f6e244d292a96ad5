// An earlier moment of a bucket: how it is chosen, the banner that says so, and how it is restored.

import { api, bucketPath } from "./api.js";
import { ask } from "./dialogs.js";
import { fill, h } from "./dom.js";
import { describe } from "./errors.js";
import { icon } from "./icons.js";
import { openMenuBelow } from "./menu.js";
import { draw, go } from "./navigation.js";
import { mayStore } from "./session.js";
import { count, date, HOUR, plural, size, t } from "./text.js";
import { timeline } from "./timeline.js";
import { banner, button, field, notice, noticeError } from "./ui.js";

// A restoration that was interrupted by the server's limits goes on this often.
const ROUNDS_MAX = 100;

// The value of a `datetime-local` input.
function local(time) {
  const shifted = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}

function momentInput(value) {
  return h("input", { type: "datetime-local", step: 1, required: true, value: local(value), max: local(new Date()) });
}

function timeOf(input) {
  const time = new Date(input.value);
  if (Number.isNaN(time.getTime())) throw new Error(t("Enter a date and a time."));
  if (time > new Date()) throw new Error(t("This moment is not over yet."));
  return time.toISOString();
}

/** Asks for a moment, and shows a folder as it was then. */
export async function chooseMoment(bucket, prefix) {
  const input = momentInput(new Date(Date.now() - HOUR));
  const at = await ask({
    title: t("Look at an earlier moment"),
    action: t("Show"),
    content: field(t("Date and time"), input, t("In the time zone of this browser.")),
    submit: async () => timeOf(input),
  });
  if (at) go("bucket", [bucket], { prefix, at });
}

/** The button that leads to an earlier moment. */
export function momentButton(bucket, prefix) {
  const open = (at) => go("bucket", [bucket], { prefix, at });
  const ago = (hours) => () => open(new Date(Date.now() - hours * HOUR).toISOString());
  const made = button(
    [icon("past"), t("As of: now"), icon("down")],
    () =>
      openMenuBelow(made, t("Earlier moments"), [
        { text: t("An hour ago"), sign: "clock", task: ago(1) },
        { text: t("Yesterday at this time"), sign: "clock", task: ago(24) },
        { text: t("A week ago"), sign: "clock", task: ago(24 * 7) },
        { text: t("Another moment…"), sign: "calendar", task: () => chooseMoment(bucket, prefix) },
      ]),
    "",
  );
  made.setAttribute("aria-haspopup", "menu");
  return made;
}

// Restores a moment. The server may stop after some time: then it goes on. The first moment is the one to go back to.
async function restoreAll(bucket, at, prefix, keepNewer = false) {
  const sum = { restored: 0, deleted: 0, failed: 0, undo_at: null };
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const answer = await api.post(bucketPath(bucket, "restore"), { at, prefix, keep_newer: keepNewer });
    sum.undo_at ??= answer.undo_at;
    for (const name of ["restored", "deleted", "failed"]) sum[name] += answer[name];
    if (answer.complete || answer.restored + answer.deleted === 0) break;
  }
  return sum;
}

const changesText = (sum) =>
  [
    plural(sum.restored, "{n} object restored", "{n} objects restored"),
    sum.deleted > 0 && plural(sum.deleted, "{n} newer object deleted", "{n} newer objects deleted"),
    sum.failed > 0 && plural(sum.failed, "{n} failed", "{n} failed"),
  ]
    .filter(Boolean)
    .join(", ");

function report(bucket, prefix, sum) {
  const undo = async () => {
    try {
      const back = await restoreAll(bucket, sum.undo_at, prefix);
      notice(t("Undone: {changes}.", { changes: changesText(back) }));
      draw();
    } catch (error) {
      noticeError(error);
    }
  };
  notice(`${changesText(sum)}.`, sum.restored + sum.deleted > 0 ? [t("Undo"), undo] : undefined);
}

function outcome(sign, number, text, note) {
  return h(
    "li",
    null,
    icon(sign),
    h("b", null, number),
    h("span", null, text, note && h("span", { class: "muted small" }, note)),
  );
}

/** Fills a place with what a restoration would change, and the button that does it. */
export async function previewRestore(place, bucket, at, prefix) {
  const card = h("section", { class: "card restore", "aria-busy": "true" });
  fill(place, card);
  const title = h("h2", { tabindex: "-1" }, t("Restore {name} to {date}", { name: prefix || bucket, date: date(at) }));
  try {
    const plan = await api.post(bucketPath(bucket, "restore"), { at, prefix, dry_run: true });
    const least = plan.complete ? "" : "≥ ";
    const problem = h("div", { "aria-live": "assertive" });
    const number = plan.restored + plan.deleted;
    const newer = h("input", { type: "checkbox", onchange: () => tell() });
    const run = button(
      "",
      async () => {
        run.disabled = newer.disabled = true;
        try {
          report(bucket, prefix, await restoreAll(bucket, at, prefix, !newer.checked));
          if (card.isConnected) go("bucket", [bucket], { prefix });
        } catch (error) {
          if (!card.isConnected) return noticeError(error);
          fill(problem, h("p", { class: "bad" }, describe(error)));
          run.disabled = newer.disabled = false;
        }
      },
      "past",
    );
    const tell = () => {
      fill(run, icon("undo"), plural(plan.restored, "Restore {n} object", "Restore {n} objects"));
      if (newer.checked) run.append(`, ${plural(plan.deleted, "delete {n}", "delete {n}")}`);
      run.disabled = plan.restored === 0 && !newer.checked;
    };
    tell();
    fill(
      card,
      h("header", null, title),
      h(
        "ul",
        null,
        outcome(
          "undo",
          `${least}${count(plan.restored)}`,
          t("objects come back or get their old content"),
          plan.restored > 0 && t("{size}, as new versions", { size: size(plan.bytes) }),
        ),
        outcome(
          "minus",
          `${least}${count(plan.deleted)}`,
          t("newer objects stay"),
          t("They are not part of that state."),
        ),
        outcome("check", `${least}${count(plan.unchanged)}`, t("objects are the same"), t("They are not touched.")),
      ),
      plan.sample.length > 0 &&
        h(
          "details",
          null,
          h("summary", null, t("Show the list")),
          h(
            "ul",
            { class: "keys" },
            plan.sample.map(({ key, action }) =>
              h("li", null, icon(action === "restore" ? "undo" : "minus"), h("code", null, key)),
            ),
            number > plan.sample.length && h("li", null, "…"),
          ),
        ),
      plan.deleted > 0 &&
        h(
          "label",
          { class: "check" },
          newer,
          plural(plan.deleted, "Also delete {n} newer object", "Also delete {n} newer objects"),
        ),
      problem,
      h(
        "p",
        { class: "row" },
        number > 0 && run,
        button(t("Cancel"), () => fill(place)),
      ),
      number > 0 && h("p", { class: "hint" }, t("No version is lost, and this can be undone.")),
    );
  } catch (error) {
    fill(card, h("header", null, title), h("p", { class: "bad", role: "alert" }, describe(error)));
  } finally {
    card.removeAttribute("aria-busy");
  }
  title.focus();
}

/** The banner of an earlier moment. `place` is where the preview of a restoration appears. */
export function pastBanner(bucket, prefix, at, place) {
  const input = momentInput(new Date(at));
  input.setAttribute("aria-label", t("Date and time"));
  input.addEventListener("change", () => {
    try {
      go("bucket", [bucket], { prefix, at: timeOf(input) });
    } catch (error) {
      noticeError(error);
    }
  });
  const made = banner(
    "past",
    [h("b", null, t("{name} as it was on {date}.", { name: bucket, date: date(at) })), " ", t("Read-only.")],
    input,
    button(t("Back to now"), () => go("bucket", [bucket], { prefix })),
    mayStore() &&
      button([icon("undo"), t("Restore this state")], () => previewRestore(place, bucket, at, prefix), "past"),
  );
  const show = (time) => go("bucket", [bucket], { prefix, at: new Date(time).toISOString() });
  return h("div", { class: "past-card" }, made, timeline(bucket, prefix, new Date(at).getTime(), show));
}
