// Shows a secret that cannot be shown again.

import { h } from "./dom.js";
import { t } from "./text.js";
import { ask, copyField } from "./ui.js";

/** Shows a new credential once. */
export function secretDialog(credential) {
  const note = h("p", null, t("The secret key is shown only now. Store it where the application finds it."));
  const environment = `export AWS_ACCESS_KEY_ID=${credential.access_key}\nexport AWS_SECRET_ACCESS_KEY=${credential.secret_key}`;
  const content = [note, copyField(t("Access key"), credential.access_key), copyField(t("Secret key"), credential.secret_key), h("pre", { class: "mono", tabindex: "0" }, environment)];
  return ask({ title: t("New credential"), content, action: t("Done"), submit: async () => true });
}

/** Shows another secret once. */
export function showSecret(title, label, secret) {
  const note = h("p", null, t("It is shown only now."));
  return ask({ title, content: [note, copyField(label, secret)], action: t("Done"), submit: async () => true });
}
