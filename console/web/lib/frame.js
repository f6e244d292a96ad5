// The frame around the views: the rail with its groups and foot, the bars of a phone, and the keys that go everywhere.

import { readQuietly } from "./api.js";
import { fill, h } from "./dom.js";
import { loadLanguage } from "./errors.js";
import { icon } from "./icons.js";
import { attention, counts, draw, go, mayLeave, place, setCount } from "./navigation.js";
import { isMember, mayAdminister, mayOversee, session } from "./session.js";
import { count, currentLanguage, LANGUAGES, size, t } from "./text.js";
import { avatar, link, select, shortName } from "./ui.js";

const always = () => true;
const hasRole = () => !isMember();
// Name in the URL, text, icon, condition.
const GROUPS = [
  [
    "",
    [
      ["overview", "Overview", "overview", hasRole],
      ["buckets", "Buckets", "bucket", always],
      ["sharing", "Sharing", "link", always],
    ],
  ],
  [
    "Access",
    [
      ["accounts", "Applications", "plug", mayOversee],
      ["policies", "Policies", "shield", mayOversee],
      ["access", "Who may what", "person", mayOversee],
      ["tokens", "Tokens", "key", mayAdminister],
    ],
  ],
  [
    "Activity",
    [
      ["activity", "Activity", "pulse", hasRole],
      ["refused", "Refused requests", "ban", mayOversee],
      ["webhooks", "Webhooks", "send", hasRole],
    ],
  ],
  [
    "Store",
    [
      ["storage", "Storage", "server", hasRole],
      ["backups", "Backups", "archive", hasRole],
      ["import", "Import", "import", hasRole],
    ],
  ],
];
const ON_PHONES = ["overview", "buckets", "sharing", "activity"];
// The entry of the rail for views that are not one of it.
const ENTRIES = {
  account: "accounts",
  bucket: "buckets",
  "bucket-access": "buckets",
  "bucket-events": "buckets",
  connect: "accounts",
  deleted: "buckets",
  lifecycle: "buckets",
  member: "buckets",
  object: "buckets",
  policy: "policies",
  public: "sharing",
  settings: "buckets",
};
const ROLES = {
  auditor: () => t("Auditor"),
  member: () => t("Member"),
  storage_admin: () => t("Storage administrator"),
  system_admin: () => t("System administrator"),
};

const COLOURS = "cairn-colours";

function storedColours() {
  try {
    return localStorage.getItem(COLOURS) ?? "";
  } catch {
    return "";
  }
}

// Light, dark, or as the system has it.
function useColours(chosen) {
  document.documentElement.dataset.colours = chosen;
  try {
    localStorage.setItem(COLOURS, chosen);
  } catch {
    // Without storage, the choice lasts as long as the page.
  }
}

/** Uses the colours that were chosen last. */
export function restoreColours() {
  document.documentElement.dataset.colours = storedColours();
}

const rail = h("nav", { class: "rail", id: "rail" });
const foot = h("footer", { class: "foot" });
const side = h("div", { class: "side" }, rail, foot);
const topBar = h("header", { class: "top-bar" });
const bottomBar = h("nav", { class: "bottom-bar" });
let onSignOut = () => {};

/** Returns the parts of the frame: rail and foot, the bar at the top, and the one at the bottom of a phone. */
export function frame(signOut) {
  onSignOut = signOut;
  forgetFigures();
  drawFrame();
  return { side, topBar, bottomBar };
}

/** Returns whether an element is in the frame. */
export const isInFrame = (element) => [side, topBar, bottomBar].some((part) => part.contains(element));

const mayOpen = ([, , , condition]) => condition();
const own = () => avatar(shortName(session.principal));
const logo = () => h("span", { class: "logo", "aria-hidden": "true" });

// On a phone, the rail covers the view.
function toggleRail(isOpen) {
  document.documentElement.classList.toggle("has-rail", isOpen);
  for (const button of document.querySelectorAll("[aria-controls=rail]"))
    button.setAttribute("aria-expanded", String(isOpen));
  if (isOpen) rail.querySelector("a").focus();
}

const openJump = async () => (await import("./jump.js")).openJump(places());

/** The entries of the rail that the role may open: text, URL, icon. */
function places() {
  return GROUPS.flatMap(([, entries]) => entries.filter(mayOpen)).map(([name, text, sign]) => [
    t(text),
    place(name),
    sign,
  ]);
}

function entryOf([name, text, sign]) {
  const entry = link([icon(sign), h("span", null, t(text))], place(name), {
    "data-view": name,
    "data-count": counts.get(name),
  });
  showAttention(entry);
  return h("li", null, entry);
}

function showAttention(entry) {
  const { kind, text } = attention.get(entry.dataset.view) ?? {};
  entry.classList.toggle("warn", kind === "warn");
  entry.classList.toggle("bad", kind === "bad");
  if (text) entry.setAttribute("aria-description", text);
  else entry.removeAttribute("aria-description");
}

/** Shows what needs attention beside the entries of the rail. */
export function drawAttention() {
  for (const entry of document.querySelectorAll("[data-view]")) showAttention(entry);
}

function languageSelect() {
  const languages = select(Object.entries(LANGUAGES), currentLanguage());
  languages.setAttribute("aria-label", t("Language"));
  languages.addEventListener("change", async () => {
    if (!(await mayLeave())) return drawFrame(true);
    await loadLanguage(languages.value);
    drawFrame(true);
    draw();
  });
  return languages;
}

function coloursSelect() {
  const colours = select(
    [
      ["", t("Colours of the system")],
      ["light", t("Light")],
      ["dark", t("Dark")],
    ],
    document.documentElement.dataset.colours,
  );
  colours.setAttribute("aria-label", t("Colours"));
  colours.addEventListener("change", () => useColours(colours.value));
  return colours;
}

/** Draws the frame again: another language, or another person. */
export function drawFrame(isMenuOpen = false) {
  rail.setAttribute("aria-label", t("Console"));
  bottomBar.setAttribute("aria-label", t("Main places"));
  const groups = GROUPS.map(([title, entries]) => [title, entries.filter(mayOpen)]).filter(
    ([, entries]) => entries.length > 0,
  );
  fill(
    rail,
    h(
      "div",
      { class: "brand" },
      logo(),
      h("div", null, h("b", null, "Cairn"), h("div", { class: "muted small" }, location.hostname)),
    ),
    h(
      "button",
      { type: "button", class: "jump", onclick: openJump },
      icon("search"),
      h("span", null, t("Search or jump")),
      h("kbd", { "aria-hidden": "true", "data-key": "Ctrl K" }),
    ),
    groups.map(([title, entries]) => [
      title && h("div", { class: "group" }, t(title)),
      h("ul", { "aria-label": title ? t(title) : undefined }, entries.map(entryOf)),
    ]),
  );
  const menu = h(
    "details",
    { class: "user", open: isMenuOpen },
    h(
      "summary",
      null,
      own(),
      h(
        "span",
        { class: "who" },
        h("b", null, session.principal),
        " ",
        h("span", { class: "muted small" }, ROLES[session.role]?.() ?? session.role),
      ),
      icon("updown"),
    ),
    h(
      "div",
      { class: "menu" },
      languageSelect(),
      coloursSelect(),
      link([icon("person"), t("Sessions")], place("sessions"), { class: "item" }),
      h("button", { type: "button", class: "item", onclick: () => onSignOut() }, icon("arrow"), t("Sign out")),
    ),
  );
  fill(foot, h("div", { id: "capacity" }), menu);
  const opener = (label, ...shown) =>
    h(
      "button",
      {
        type: "button",
        class: "quiet",
        "aria-label": label,
        "aria-controls": "rail",
        "aria-expanded": "false",
        onclick: () => toggleRail(!document.documentElement.classList.contains("has-rail")),
      },
      shown,
    );
  fill(
    topBar,
    link([logo(), h("b", null, "Cairn")], place("overview"), { class: "home" }),
    h(
      "button",
      { type: "button", class: "quiet", "aria-label": t("Search or jump to"), onclick: openJump },
      icon("search"),
    ),
    opener(t("Account and settings"), own()),
  );
  const short = GROUPS.flatMap(([, entries]) => entries).filter((one) => ON_PHONES.includes(one[0]) && mayOpen(one));
  fill(
    bottomBar,
    short.map(([name, text, sign]) =>
      link([icon(sign), h("span", null, t(text))], place(name), { "data-place": name }),
    ),
    opener(t("More"), icon("more"), h("span", null, t("More"))),
  );
  drawCapacity();
}

/** Marks the entry of a view. The rail of a phone closes. */
export function markPlace(name) {
  toggleRail(false);
  const entry = ENTRIES[name] ?? name;
  for (const one of [...rail.querySelectorAll("a"), ...bottomBar.querySelectorAll("a")]) {
    if ((one.dataset.view ?? one.dataset.place) === entry) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
}

let known = null;

/** Forgets the figures beside the entries, which another person may not see. */
export function forgetFigures() {
  known = null;
  counts.clear();
  attention.clear();
}

/** Shows the space that Cairn, others and nobody uses, and the number of buckets. */
export async function readCapacity() {
  if (isMember()) return;
  const [status, usage] = await Promise.all([
    readQuietly("/api/v1/storage/status"),
    readQuietly("/api/v1/storage/usage"),
  ]);
  // The views say what is wrong.
  if (!status || !usage) return;
  known = { capacity: status.capacity_bytes, free: status.available_bytes, own: usage.physical_bytes };
  setCount("buckets", count(usage.buckets));
  drawCapacity();
}

function drawCapacity() {
  const shown = document.getElementById("capacity") ?? foot.querySelector("#capacity");
  if (!known || !shown) return;
  const { capacity, free, own } = known;
  const others = Math.max(capacity - free - own, 0);
  const part = (kind, bytes) => {
    const made = h("i", { class: kind });
    made.style.setProperty("inline-size", `${(bytes / (capacity || 1)) * 100}%`);
    return made;
  };
  fill(
    shown,
    h(
      "div",
      null,
      h("span", null, t("Cairn uses")),
      h("span", null, h("b", null, size(own)), " ", t("of {capacity}", { capacity: size(capacity) })),
    ),
    h("div", { class: "parts", "aria-hidden": "true" }, part("own", own), part("others", others)),
    h(
      "div",
      null,
      h("span", null, t("Others {size}", { size: size(others) })),
      h("span", null, t("Free {size}", { size: size(free) })),
    ),
  );
}

/** Reads the numbers of applications and links for the rail. */
export async function readCounts() {
  if (isMember()) return;
  const [accounts, links] = await Promise.all([
    mayOversee() ? readQuietly("/api/v1/service-accounts") : null,
    readQuietly("/api/v1/shares", { status: "active", limit: 100 }),
  ]);
  const number = accounts?.service_accounts.length ?? 0;
  if (accounts) setCount("accounts", number > 0 ? count(number) : undefined);
  if (!links) return;
  const { shares, next_continuation_token: more } = links;
  setCount("sharing", shares.length > 0 ? `${count(shares.length)}${more ? "+" : ""}` : undefined);
}

let pressed = 0;
const AFTER_G = { a: "activity", b: "buckets", o: "overview" };
const BETWEEN_KEYS = 1500;

addEventListener("keydown", (event) => {
  if (!session || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && document.documentElement.classList.contains("has-rail")) {
    toggleRail(false);
    document.querySelector(".bottom-bar button").focus();
    return;
  }
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openJump();
    return;
  }
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  const target = event.timeStamp - pressed < BETWEEN_KEYS && AFTER_G[event.key];
  pressed = event.key === "g" ? event.timeStamp : 0;
  if (target) go(target);
  else if (event.key === "?") import("./jump.js").then(({ showKeys }) => showKeys());
});

// A menu closes when something else is clicked, or with Escape.
addEventListener("click", (event) => {
  const menu = foot.querySelector("details[open]");
  if (menu && !menu.contains(event.target)) menu.open = false;
});
foot.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && foot.querySelector("details[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
