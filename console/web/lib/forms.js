// Forms: what was entered and not saved, and which field an error is about.

import { fill, h } from "./dom.js";
import { describe } from "./errors.js";

// What has unsaved input, as long as it is shown: an element, and whether something in it has changed.
const guarded = new Map();

/** Lets the user leave an element only after a question while `hasChanges()`. Returns what ends that. */
export function guard(element, hasChanges) {
  guarded.set(element, hasChanges);
  return () => guarded.delete(element);
}

/** As `guard`, for an element that asks when one of its fields is not as it is now. */
export function guardFields(form) {
  const valuesOf = () =>
    [...form.querySelectorAll("input, select, textarea")]
      .map((one) => (one.matches("[type=checkbox], [type=radio]") ? one.checked : one.value))
      .join("\n");
  const before = valuesOf();
  return guard(form, () => valuesOf() !== before);
}

/** Whether something that is shown has unsaved input. */
export const isUnsaved = () =>
  [...guarded].some(([element, hasChanges]) => {
    // A dialog that was closed is removed a moment later.
    const isShown = element.isConnected && element.closest("dialog")?.open !== false;
    if (!isShown) guarded.delete(element);
    return isShown && hasChanges();
  });

/** Forgets what has unsaved input. */
export const forgetUnsaved = () => guarded.clear();

addEventListener("beforeunload", (event) => {
  if (isUnsaved()) event.preventDefault();
});

/** An error about a field, or the field with this name. */
export const wrong = (field, text) => Object.assign(new Error(text), { field });

// What the codes are about whose messages do not begin with the name of a field.
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
