// The program: login, the frame, and the view of the URL.

import { ApiError, api, whenSignedOut } from "./lib/api.js";
import { findAttention } from "./lib/attention.js";
import { fill, h } from "./lib/dom.js";
import { describe, loadLanguage } from "./lib/errors.js";
import {
  drawFrame,
  forgetFigures,
  frame,
  isInFrame,
  markPlace,
  readCapacity,
  readCounts,
  restoreColours,
} from "./lib/frame.js";
import { arrive, draw, drawWith, mayLeave, place, setPlace, showKeptPlace } from "./lib/navigation.js";
import { isMember, returnToPlace, session, setSession } from "./lib/session.js";
import { t } from "./lib/text.js";
import { errorBox, field, noticeError, notices, problems, SKELETON_AFTER, skeleton, succeeded } from "./lib/ui.js";
import { show as showOverview } from "./views/overview.js";

const VIEWS = new Set([
  "access",
  "account",
  "accounts",
  "activity",
  "backups",
  "bucket",
  "bucket-access",
  "bucket-events",
  "buckets",
  "connect",
  "deleted",
  "import",
  "lifecycle",
  "member",
  "object",
  "overview",
  "policies",
  "policy",
  "public",
  "refused",
  "sessions",
  "settings",
  "sharing",
  "storage",
  "tokens",
  "webhooks",
]);

// A URL that somebody has changed may not be decodable.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// Views of earlier versions, which are in bookmarks: their filters are now a text that is found anywhere.
function moved(view, parameters) {
  if (view !== "audit" && view !== "events") return null;
  const texts = ["request_id", "operation", "source_ip", "resource", "key", "prefix"];
  return place("activity", [], {
    show: parameters.get("result") === "denied" ? "refused" : "",
    text: texts.map((name) => parameters.get(name)).find(Boolean) ?? "",
    principal: parameters.get("principal") ?? "",
    bucket: parameters.get("bucket") ?? "",
  });
}

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...parts] = path.split("/");
  const target = moved(view, new URLSearchParams(query ?? ""));
  if (target) {
    setPlace(target);
    return route();
  }
  const name = VIEWS.has(view) ? view : "overview";
  const found = { name, parts: parts.map(decoded), parameters: new URLSearchParams(query ?? "") };
  if (!isMember() || ["sessions", "object", "sharing"].includes(name)) return found;
  return { ...found, name: "member", parts: name === "bucket" ? found.parts : [] };
}

const main = h("main", { id: "main" });
let leave = null;
let drawn = 0;

async function isReachable() {
  return fetch("/", { method: "HEAD", cache: "no-store" }).then(
    (response) => response.ok,
    () => false,
  );
}

const isFocusFree = () => document.activeElement === document.body || isInFrame(document.activeElement);

// The overview is the first view of most visits, and belongs to the program.
async function viewOf(name) {
  return name === "overview" ? { show: showOverview } : import(`./views/${name}.js`);
}

// Views are there before they are needed: also when the server is restarted, and in a tab that outlives an upgrade.
function loadViews() {
  for (const name of VIEWS) viewOf(name).catch(() => {});
}

// Says why a view is not shown, with a button that helps.
async function problemBox(error) {
  const isMissing = !(error instanceof ApiError) && String(error.message).includes("import");
  if (!isMissing) return errorBox(error, draw, draw);
  if (await isReachable()) return errorBox(new Error(t("The server has a new version.")), () => location.reload());
  // Browsers do not ask again for a module that they did not get.
  const again = async () => ((await isReachable()) ? location.reload() : draw());
  return errorBox(new ApiError(0, "UNREACHABLE", "", ""), again);
}

// Ends the timers of the view. What it has still to draw is not drawn.
function leaveView() {
  leave?.();
  leave = null;
  drawn += 1;
}

async function drawView() {
  const { name, parts, parameters } = route();
  leaveView();
  const number = drawn;
  main.setAttribute("aria-busy", "true");
  markPlace(name);
  if (number > 1) readCapacity();
  const body = h("div", { class: "view" });
  const wasHere = isFocusFree() || main.contains(document.activeElement);
  // What is there stays until there is something else, for a moment.
  const show = () => number === drawn && !body.isConnected && fill(main, problems(), body);
  const timer = setTimeout(() => {
    if (body.childElementCount === 0) fill(body, skeleton());
    show();
  }, SKELETON_AFTER);
  try {
    const view = await viewOf(name);
    if (number !== drawn) return;
    const end = await view.show(body, { parts, parameters });
    succeeded(draw);
    // Another view is shown meanwhile: what this one has begun ends at once.
    if (number === drawn) leave = end ?? null;
    else end?.();
  } catch (error) {
    if (error.name === "AbortError" || number !== drawn) return;
    const box = await problemBox(error);
    if (number !== drawn) return;
    fill(body, h("header", { class: "head" }, h("h1", { tabindex: "-1" }, t("Error"))), box);
  } finally {
    clearTimeout(timer);
    if (number === drawn) {
      show();
      main.removeAttribute("aria-busy");
    }
  }
  if (number !== drawn) return;
  // The moment that a user can go on: tests measure it.
  performance.mark("shown");
  const title = body.querySelector("h1");
  document.title = title ? `${title.textContent} · Cairn` : "Cairn";
  // What had the focus is gone. Keyboards and screen readers go on at the title.
  if (number > 1 && wasHere && isFocusFree()) title?.focus({ preventScroll: true });
  showKeptPlace();
}

// Returns how people sign in through a provider; null if with tokens only, which is all that the first page then loads.
async function readProvider() {
  const found = await api.get("/sign-in", {}, { isLogin: true }).catch(() => null);
  return found && (await import("./lib/people.js")).signInWith(found);
}

function loginForm(isAgain, provider) {
  const token = h("input", { type: "password", name: "token", autocomplete: "current-password", spellcheck: "false" });
  const key = h("input", { type: "text", name: "username", autocomplete: "username", spellcheck: "false" });
  const secret = h("input", { type: "password", name: "password", autocomplete: "current-password" });
  const rootPart = h(
    "details",
    null,
    h("summary", null, t("Sign in with the root credential")),
    field(t("Access key"), key),
    field(t("Secret key"), secret),
  );
  const content = [
    isAgain && h("p", null, t("Your session has ended. Sign in to continue where you were.")),
    isAgain && provider?.inTab(),
    field(t("Token"), token, t("The system token, or a management token. serve --dev prints one.")),
    rootPart,
  ];
  const login = async () => {
    const body = token.value ? { token: token.value } : { access_key: key.value, secret_key: secret.value };
    setSession(await api.post("/session", body, { isLogin: true }));
  };
  return { content, login };
}

let signingIn = null;
// Requests that were under way when the user signed out: they go on after the next login, and ask for none.
const interrupted = [];

// Requests that find the session ended wait here, and are repeated: nothing of what the user did is lost.
function signInAgain() {
  if (!session) return new Promise((resolve) => interrupted.push(resolve));
  signingIn ??= (async () => {
    const { principal } = session;
    const [{ ask }, provider] = await Promise.all([import("./lib/dialogs.js"), readProvider()]);
    // A person may have signed in in another tab.
    let isBack = false;
    const look = async () => {
      const found = await api.get("/session", {}, { isLogin: true }).catch(() => null);
      if (!found) return;
      setSession(found);
      isBack = true;
      document.querySelector("dialog[open] form [name=token]")?.closest("dialog").close();
    };
    if (provider) addEventListener("focus", look);
    while (!isBack) {
      const { content, login } = loginForm(true, provider);
      if (await ask({ title: t("Sign in"), content, action: t("Sign in"), isNote: true, submit: login })) break;
    }
    removeEventListener("focus", look);
    signingIn = null;
    const isAnother = session.principal !== principal;
    if (isAnother) forgetFigures();
    drawFrame();
    markPlace(route().name);
    if (isAnother) readFigures();
  })();
  return signingIn;
}

async function drawLogin() {
  const provider = await readProvider();
  const failure = provider?.failure();
  const { content, login } = loginForm(false);
  const problem = h("div", { role: "alert" });
  const show = (text) => fill(problem, text && h("p", { class: "bad" }, text));
  const submit = h("button", { type: "submit", class: provider ? "" : "main" }, t("Sign in"));
  const form = h(
    "form",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        submit.disabled = true;
        try {
          await login();
          await start();
        } catch (error) {
          show(describe(error));
        } finally {
          submit.disabled = false;
        }
      },
    },
    h("h1", null, h("span", { class: "logo", "aria-hidden": "true" }), "Cairn"),
    provider && [problem, provider.part((error) => show(describe(error)))],
    content,
    provider ? null : problem,
    submit,
  );
  fill(document.body, h("main", { class: "login", id: "main" }, form), notices());
  performance.mark("shown");
  document.title = `${t("Sign in")} · Cairn`;
  show(failure);
  form.querySelector(provider ? ".provider button" : "input").focus();
}

async function signOut() {
  if (!(await mayLeave())) return;
  const ended = session;
  // Before the request: what the server answers from now on is no reason to ask for a login.
  setSession(null);
  try {
    await api.remove("/session", { isLogin: true });
  } catch (error) {
    if (error.status !== 401) {
      setSession(ended);
      return noticeError(error);
    }
  }
  leaveView();
  await drawLogin();
  if (ended?.sign_out_url) (await import("./lib/people.js")).offerSignOut(ended.sign_out_url);
}

// Reads what the frame shows of the store.
function readFigures() {
  if (isMember()) return;
  readCapacity();
  readCounts();
  // What needs attention is said in every view. The overview reads it itself.
  if (route().name !== "overview") findAttention();
}

async function start() {
  whenSignedOut(signInAgain);
  const skip = h(
    "a",
    {
      class: "skip",
      href: "#main",
      onclick: (event) => {
        event.preventDefault();
        main.querySelector("h1")?.focus();
      },
    },
    t("Skip to content"),
  );
  for (const repeat of interrupted.splice(0)) repeat();
  const { side, topBar, bottomBar } = frame(signOut);
  fill(document.body, skip, h("div", { class: "shell" }, side, topBar, main, bottomBar), notices());
  await drawView();
  setTimeout(() => {
    if (!isMember()) loadViews();
    readFigures();
  }, 500);
}

async function boot() {
  // Without its words, the page is in English.
  await loadLanguage().catch(() => {});
  try {
    setSession(await api.get("/session", {}, { isLogin: true }));
  } catch (error) {
    if (error.status === 401) return drawLogin();
    return fill(
      document.body,
      h(
        "main",
        { class: "login" },
        errorBox(error, () => location.reload()),
      ),
    );
  }
  if (!session) return drawLogin();
  returnToPlace();
  return start();
}

drawWith(drawView);
// Views come back to where they were by themselves, when they are drawn.
history.scrollRestoration = "manual";
addEventListener("hashchange", async ({ oldURL }) => {
  // Also before anybody is signed in: each entry of the history has a number.
  if (!((await arrive(oldURL)) && session)) return;
  scrollTo(0, 0);
  problems().replaceChildren();
  drawView();
});
restoreColours();
document.documentElement.dataset.ready = "1";
boot();
