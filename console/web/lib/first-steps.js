// The first steps in an empty store: a bucket, a key, the first object. Each puts a stone on the pile.

import { api, bucketPath } from "./api.js";
import { bucketNameInput } from "./bucket-name.js";
import { h, svg } from "./dom.js";
import { icon } from "./icons.js";
import { draw, place } from "./navigation.js";
import { plural, t } from "./text.js";
import { button, field, link, noticeError } from "./ui.js";

const DAYS_KEPT = 30;
// Centre and radii of the stones, from the lowest up.
const STONES = [
  [100, 124, 88, 30],
  [100, 74, 58, 24],
  [100, 32, 36, 20],
];

/** Lets a bucket keep old versions for some days. */
export async function protect(name) {
  await api.put(bucketPath(name, "versioning"), { versioning: "Enabled" });
  await api.post(bucketPath(name, "lifecycle"), {
    prefix: "",
    tags: [],
    noncurrent_version_expiration: DAYS_KEPT,
    expired_delete_markers: true,
    enabled: true,
  });
}

/** The text of the choice to keep old versions. */
export const keptText = () => plural(DAYS_KEPT, "Keep old versions for {n} day", "Keep old versions for {n} days");

function pile(done) {
  return svg(
    "svg",
    { class: "pile", viewBox: "0 0 200 160", role: "img", "aria-label": t("{n} of 3 steps are done", { n: done }) },
    STONES.map(([cx, cy, rx, ry], index) => svg("ellipse", { cx, cy, rx, ry, class: index < done ? "laid" : "" })),
  );
}

function step(number, state, title, text, ...content) {
  return h(
    "li",
    { class: state, "aria-current": state === "now" ? "step" : undefined },
    h("span", { class: "number-of" }, state === "done" ? icon("check") : number),
    h("div", null, h("h3", null, title), h("p", { class: "muted" }, text), state === "now" && content),
  );
}

function bucketForm() {
  const name = bucketNameInput();
  const versions = h("input", { type: "checkbox", checked: true });
  const create = h("button", { type: "submit", class: "main" }, t("Create bucket"));
  return h(
    "form",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        create.disabled = true;
        try {
          await api.post("/api/v1/buckets", { name: name.value, object_lock: false });
          if (versions.checked) await protect(name.value);
          await draw();
        } catch (error) {
          noticeError(error);
        } finally {
          create.disabled = false;
        }
      },
    },
    field(t("Name"), name, t("3 to 63 lower-case letters, digits, dots and hyphens.")),
    h("label", { class: "check" }, versions, keptText()),
    create,
  );
}

/** Shows the three steps. What the store has already is done. */
export function firstSteps(buckets, accounts) {
  const bucket = buckets[0]?.bucket;
  const done = [bucket !== undefined, accounts.length > 0].indexOf(false);
  const number = done < 0 ? 2 : done;
  const stateOf = (index) => {
    if (index < number) return "done";
    return index === number ? "now" : "later";
  };
  return h(
    "div",
    { class: "columns" },
    h(
      "section",
      { class: "card steps" },
      h("h2", null, t("Three steps to the first object")),
      h(
        "ol",
        null,
        step(
          1,
          stateOf(0),
          t("Create a bucket"),
          bucket ? t("{name} was created.", { name: bucket }) : t("A bucket holds objects. Nothing in it is public."),
          bucketForm(),
        ),
        step(
          2,
          stateOf(1),
          t("Make a key for your application"),
          t("The application gets an account of its own, with rights to this bucket and nothing else."),
          link([icon("plug"), t("Connect an application")], place("connect", [], { bucket }), { class: "button main" }),
        ),
        step(
          3,
          stateOf(2),
          t("Send the first object"),
          t("The application writes it, or you upload a file here."),
          bucket &&
            link([icon("upload"), t("Open {name}", { name: bucket })], place("bucket", [bucket]), {
              class: "button main",
            }),
          " ",
          button(t("Look again"), draw),
        ),
      ),
    ),
    h(
      "section",
      { class: "card pile-card" },
      pile(number),
      h("b", null, t("{n} of 3", { n: number })),
      h("p", { class: "muted" }, t("Nothing is public.")),
    ),
  );
}
