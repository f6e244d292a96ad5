// Sign-in of people through an OpenID provider: the way there, and back to the place that they were at.

import { ApiError, api } from "./api.js";
import { confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { describe } from "./errors.js";
import { keepPlace } from "./session.js";
import { t } from "./text.js";
import { button, notice, noticeError } from "./ui.js";

const UNKNOWN = "unknown";

// Says why the sign-in has failed that has led to this page; nothing if there was none.
function failureOf(provider) {
  const isUnknown = new URLSearchParams(location.search).get("sign-in") === UNKNOWN;
  if (location.search) history.replaceState(history.state, "", `/${location.hash}`);
  const { code, message } = provider?.failure ?? {};
  if (code) return describe(new ApiError(0, code, message, ""));
  if (!isUnknown) return null;
  return t("This sign-in took too long, was finished before, or was begun in another browser. Sign in again.");
}

async function goToProvider(provider) {
  // The cookie of a sign-in is of the host that the provider sends the browser back to.
  if (location.origin !== provider.console_url) return location.assign(`${provider.console_url}/${location.hash}`);
  const { url } = await api.post("/sign-in", undefined, { isLogin: true });
  keepPlace();
  location.assign(url);
}

// The way to the provider from the page of the login. `onProblem` gets what went wrong.
function providerPart(provider, onProblem) {
  const begin = h(
    "button",
    {
      type: "button",
      class: "main",
      onclick: async () => {
        begin.disabled = true;
        try {
          await goToProvider(provider);
        } catch (error) {
          onProblem(error);
        } finally {
          begin.disabled = false;
        }
      },
    },
    t("Sign in with {name}", { name: provider.name }),
  );
  return h("div", { class: "provider" }, begin, h("p", { class: "muted small" }, t("or with a token")));
}

// The way to the provider when the session has ended: in another tab, because this one has unfinished work.
const providerInTab = (provider) =>
  h(
    "p",
    null,
    h("a", { href: "/", target: "_blank", rel: "noopener" }, t("Sign in with {name} in a new tab", provider)),
  );

/** Returns what pages need for a provider: the way to it, also in another tab, and why the last one has failed. */
export const signInWith = (provider) => ({
  part: (onProblem) => providerPart(provider, onProblem),
  inTab: () => providerInTab(provider),
  failure: () => failureOf(provider),
});

async function signOutEverywhere() {
  const text = t("All your sessions end, also those of others with the same token. Tokens stay valid.");
  if (!(await confirmed({ title: t("Sign out everywhere"), text, action: t("Sign out everywhere") }))) return;
  try {
    await api.remove("/sessions");
    location.reload();
  } catch (error) {
    noticeError(error);
  }
}

/** Says that the session at the provider goes on, with the way to end it. */
export const offerSignOut = (url) =>
  notice(t("You are still signed in at the provider."), [t("Sign out there, too"), () => location.assign(url)]);

/** The button that ends all sessions of the user. */
export const everywhereButton = () => button(t("Sign out everywhere"), signOutEverywhere, "danger");
