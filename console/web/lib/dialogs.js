// Dialogs with a form, and which field of it an error is about. They are loaded with what opens the first one.

import { fill, h } from "./dom.js";
import { describe } from "./errors.js";
import { guardFields } from "./forms.js";
import { t } from "./text.js";
import { button, field, noticeError } from "./ui.js";

/** An error about a field, or the field with this name. */
export const wrong = (field, text) => Object.assign(new Error(text), { field });

// The fields of codes whose messages do not begin with the name of a field.
const FIELDS = {
  BUCKET_ALREADY_EXISTS: "bucket",
  BUCKET_NOT_FOUND: "bucket",
  EXPIRATION_REQUIRED: "expires_at",
  INVALID_BUCKET_NAME: "bucket",
  INVALID_WEBHOOK_TARGET: "target_url",
  LIFETIME_TOO_LONG: "expires_at",
  QUOTA_BELOW_USAGE: "bytes",
  SERVICE_ACCOUNT_ALREADY_EXISTS: "name",
};

// The server begins a message with the path of what is wrong: `rules[0].allowed_origins: …`, `label must …`.
function fieldOf(form, error) {
  const [, path = ""] =
    /^(?:the request body is invalid: )?(?:the )?([\w.[\]]+)(?::| must | is | has )/.exec(error.message) ?? [];
  if (error.field instanceof Node) return error.field;
  const names = [error.field ?? FIELDS[error.code], ...path.split(/[.[\]]+/).reverse()];
  const fields = [...form.querySelectorAll("[name]:not([type=radio])")];
  return names
    .filter(Boolean)
    .map((name) => fields.find((one) => one.name === name))
    .find(Boolean);
}

/** Shows why a form was refused: under the field that the error is about, or else in `place`. */
export function refuse(form, place, error) {
  accept(form);
  fill(place);
  const note = h("p", { class: "bad small refused", id: "refused", role: "alert" }, describe(error));
  const field = fieldOf(form, error);
  if (!field) return fill(place, h("p", { class: "bad", role: "alert" }, describe(error)));
  (field.closest(".field, .entry, fieldset") ?? field.parentElement).append(note);
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-errormessage", "refused");
  field.addEventListener("input", () => accept(form), { once: true });
  const part = field.closest("details");
  if (part) part.open = true;
  field.focus();
}

/** Takes back that a field was refused. */
export function accept(form) {
  for (const note of form.querySelectorAll(".refused")) note.remove();
  for (const field of form.querySelectorAll("[aria-invalid]"))
    for (const name of ["aria-invalid", "aria-errormessage"]) field.removeAttribute(name);
}

let dialogs = 0;

/**
 * Opens a dialog with a form. `submit` is called with the form; the dialog closes when it has succeeded. While it runs,
 * nobody can cancel. Returns a promise of what `submit` returned, or `undefined` if the dialog was cancelled. `isNote`:
 * there is nothing to cancel.
 */
export function ask({ title, content, action, danger = false, isNote = false, submit }) {
  const before = document.activeElement;
  dialogs += 1;
  const id = `dialog-${dialogs}`;
  return new Promise((resolve) => {
    const problem = h("div", { "aria-live": "assertive" });
    const main = h("button", { type: "submit", class: danger ? "danger" : "main" }, action);
    const cancel = !isNote && button(t("Cancel"), () => end());
    // What was submitted goes on when the dialog is closed, as another view does it.
    let running = null;
    let result;
    const submitted = async () => {
      try {
        // An answer without a body is a success, too.
        result = (await submit(form)) ?? true;
        end();
      } catch (error) {
        if (dialog.open) refuse(form, problem, error);
        else noticeError(error);
      }
    };
    const form = h(
      "form",
      {
        method: "dialog",
        onsubmit: async (event) => {
          event.preventDefault();
          setBusy(true);
          accept(form);
          fill(problem);
          running = submitted();
          await running;
          running = null;
          setBusy(false);
          // A disabled button has lost the focus.
          if (dialog.open && !dialog.contains(document.activeElement)) main.focus();
        },
      },
      h("h2", { id }, title),
      content,
      problem,
      h("div", { class: "actions" }, cancel, main),
    );
    const setBusy = (isBusy) => {
      for (const one of [main, cancel]) if (one) one.disabled = isBusy;
    };
    // The event "close" comes with the next frame, and a tab in the background draws none.
    const end = async () => {
      if (!dialog.isConnected) return;
      dialog.close();
      dialog.remove();
      (before?.isConnected ? before : document.querySelector("main h1"))?.focus?.();
      await running;
      resolve(result);
    };
    const dialog = h(
      "dialog",
      {
        "aria-labelledby": id,
        class: isNote && "note",
        oncancel: (event) => running && event.preventDefault(),
        onclose: end,
      },
      form,
    );
    document.body.append(dialog);
    dialog.showModal();
    if (!isNote && !danger) guardFields(form, () => running !== null);
    (form.querySelector("input:not([readonly]), select, textarea") ?? main).focus();
  });
}

/** Shows something in a dialog until the user has seen it. */
export function tell(title, content) {
  return ask({ title, content, action: t("Done"), isNote: true, submit: async () => true });
}

/**
 * Asks for a confirmation. With `name`, that name must be typed. `task` is done before the dialog closes, so that a
 * refusal is shown in it; `shown` is what tells how far the task is. What takes nothing away is not `danger`.
 */
export function confirmed({ title, text, action, name, task, shown, danger = true }) {
  const input = name && h("input", { type: "text", autocomplete: "off", spellcheck: "false", required: true });
  const content = [text && h("p", null, text), name && field(t("Type {name} to confirm", { name }), input), shown];
  return ask({
    title,
    content,
    action,
    danger,
    submit: async () => {
      if (name && input.value !== name) throw wrong(input, t("The name does not match."));
      await task?.();
      return true;
    },
  });
}
