// Buckets: list, creation, deletion.

import { api, bucketPath } from "../lib/api.js";
import { bucketNameInput } from "../lib/bucket-name.js";
import { removeBucket } from "../lib/buckets.js";
import { ask } from "../lib/dialogs.js";
import { debounce, h } from "../lib/dom.js";
import { icon, stoneOf } from "../lib/icons.js";
import { draw, go, place, setCount } from "../lib/navigation.js";
import { searchField } from "../lib/search-field.js";
import { section } from "../lib/sections.js";
import { mayStore } from "../lib/session.js";
import { count, plural, size, t } from "../lib/text.js";
import {
  actionsColumn,
  bar,
  button,
  commands,
  emptyBox,
  field,
  link,
  loadInto,
  noticeError,
  sizeCell,
  table,
  tableRow,
  tag,
  timeCell,
  viewHead,
} from "../lib/ui.js";

async function create() {
  const name = bucketNameInput();
  const versions = h("input", { type: "checkbox" });
  const lock = h("input", {
    type: "checkbox",
    onchange: () => {
      versions.checked ||= lock.checked;
      versions.disabled = lock.checked;
    },
  });
  const content = [
    field(t("Name"), name, t("3 to 63 lower-case letters, digits, dots and hyphens.")),
    h("label", { class: "check" }, versions, t("Keep old versions of objects")),
    h(
      "label",
      { class: "check" },
      lock,
      t("Object lock: versions can be protected from deletion. It cannot be turned off."),
    ),
  ];
  const made = await ask({
    title: t("Create a bucket"),
    content,
    action: t("Create bucket"),
    submit: async () => {
      const bucket = await api.post("/api/v1/buckets", { name: name.value, object_lock: lock.checked });
      if (versions.checked && !lock.checked)
        await api.put(bucketPath(bucket.name, "versioning"), { versioning: "Enabled" });
      return bucket;
    },
  });
  if (made) go("bucket", [made.name]);
}

const SECTION = 100;

export async function show(view) {
  await loadInto(view, async () => {
    const { buckets } = await api.get("/api/v1/buckets");
    setCount("buckets", count(buckets.length));
    const filter = h("input", { type: "search", placeholder: t("Filter"), "aria-label": t("Filter buckets") });
    const list = h("div");
    const columns = [
      {
        name: t("Name"),
        cell: (row) =>
          h(
            "div",
            { class: "name" },
            h("span", { class: `tile small-tile stone-${stoneOf(row.name)}` }, icon("bucket")),
            h(
              "span",
              null,
              link(row.name, place("bucket", [row.name])),
              row.versioning === "Enabled" && tag(t("versions"), "", "layers"),
              row.object_lock && tag(t("object lock"), "", "lock"),
              row.quota.bytes.mode === "limit" && tag(t("quota {size}", { size: size(row.quota.bytes.bytes) })),
            ),
          ),
      },
      { name: t("Objects"), align: "end", label: t("objects"), cell: (row) => count(row.usage.objects) },
      { name: t("Size"), align: "end", cell: (row) => sizeCell(row.usage.bytes) },
      { name: t("Created"), kind: "quiet", from: "medium", cell: (row) => timeCell(row.created_at) },
      {
        ...actionsColumn(
          (row) =>
            mayStore() && [
              link(t("Settings"), place("settings", [row.name]), {
                "aria-label": t("Settings of {name}", { name: row.name }),
              }),
              h(
                "button",
                {
                  type: "button",
                  class: "link danger",
                  "aria-label": t("Delete bucket {name}", { name: row.name }),
                  onclick: () => removeBucket(row.name).then((removed) => removed && draw(), noticeError),
                },
                t("Delete"),
              ),
            ],
        ),
        from: "medium",
      },
    ];
    // Rows far from the screen are not kept, so thousands of buckets are as quick as ten.
    const update = () => {
      const wanted = buckets.filter((bucket) => bucket.name.includes(filter.value.trim().toLowerCase()));
      if (buckets.length === 0)
        return list.replaceChildren(
          emptyBox(t("No buckets yet."), mayStore() && button(t("Create a bucket"), create, "main")),
        );
      if (wanted.length === 0) return list.replaceChildren(emptyBox(t("No bucket has this in its name.")));
      const shown = table(t("Buckets"), columns, []);
      const whole = shown.querySelector("table");
      whole.setAttribute("aria-rowcount", wanted.length + 1);
      for (let first = 0; first < wanted.length; first += SECTION) {
        whole.append(
          section(
            () =>
              wanted
                .slice(first, first + SECTION)
                .map((row, index) => tableRow(columns, row, () => ({ "aria-rowindex": first + index + 2 }))),
            Math.min(SECTION, wanted.length - first),
          ),
        );
      }
      return list.replaceChildren(shown);
    };
    filter.addEventListener("input", debounce(100, update)[0]);
    update();
    return [
      viewHead(t("Buckets"), {
        note: plural(buckets.length, "{n} bucket", "{n} buckets"),
        actions: mayStore() && button([icon("plus"), t("Create bucket")], create, "main"),
      }),
      bar(searchField(filter)),
      list,
      commands("cairn bucket list", "aws s3 ls --endpoint-url $AWS_ENDPOINT_URL"),
    ];
  });
}
