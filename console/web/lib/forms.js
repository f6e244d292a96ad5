// Forms: what was entered and not saved.

// The shown forms that can have unsaved input: an element, and whether something in it has changed.
const guarded = new Map();

/** Lets the user leave an element only after a question while `hasChanges()`. Returns what ends that. */
export function guard(element, hasChanges) {
  guarded.set(element, hasChanges);
  return () => guarded.delete(element);
}

/** As `guard`, for an element that asks when a field is not as it is now. `isSent()`: its fields are being saved. */
export function guardFields(form, isSent = () => false) {
  const valuesOf = () =>
    [...form.querySelectorAll("input, select, textarea")]
      .map((one) => (one.matches("[type=checkbox], [type=radio]") ? one.checked : one.value))
      .join("\n");
  const before = valuesOf();
  return guard(form, () => !isSent() && valuesOf() !== before);
}

/** Returns whether something that is shown has unsaved input. */
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
