// Shows a secret that cannot be shown again.

import { copyField } from "./copy-field.js";
import { tell } from "./dialogs.js";
import { h } from "./dom.js";
import { t } from "./text.js";

/** Shows a new credential once. */
export function secretDialog(credential) {
  const note = h("p", null, t("The secret key is shown only now. Store it where the application finds it."));
  const environment = [
    `export AWS_ACCESS_KEY_ID=${credential.access_key}`,
    `export AWS_SECRET_ACCESS_KEY=${credential.secret_key}`,
  ].join("\n");
  const content = [
    note,
    copyField(t("Access key"), credential.access_key),
    copyField(t("Secret key"), credential.secret_key),
    h("pre", { class: "mono", tabindex: "0" }, environment),
  ];
  return tell(t("New credential"), content);
}

/** Shows another secret once. */
export function showSecret(title, label, secret) {
  const note = h("p", null, t("It is shown only now."));
  return tell(title, [note, copyField(label, secret)]);
}
