// The pages of a person without a role: own buckets and their folders. The server decides about each request.

import { api, bucketPath } from "../lib/api.js";
import { fill, h } from "../lib/dom.js";
import { chosen, dropped, takeDrops } from "../lib/files.js";
import { icon, mark, stoneOf } from "../lib/icons.js";
import { place } from "../lib/navigation.js";
import { crumbs } from "../lib/objects.js";
import { pages } from "../lib/pages.js";
import { t } from "../lib/text.js";
import { button, emptyBox, link, loadInto, sizeCell, table, timeCell, viewHead } from "../lib/ui.js";
import { decided } from "../lib/upload-choice.js";
import { showUploads } from "../lib/upload-sheet.js";
import { add, whenUploaded } from "../lib/uploads.js";

const PAGE = 500;

const named = (sign, text, href) => h("div", { class: "name" }, sign, link(text, href));

const showBuckets = (view) =>
  loadInto(view, async () => {
    const { buckets } = await api.get("/api/v1/buckets");
    const tile = (name) => h("span", { class: `tile small-tile stone-${stoneOf(name)}` }, icon("bucket"));
    const columns = [
      { name: t("Name"), cell: ({ name }) => named(tile(name), name, place("bucket", [name])) },
      { name: t("Created"), kind: "quiet", from: "medium", cell: (row) => timeCell(row.created_at) },
    ];
    return [
      viewHead(t("Buckets")),
      buckets.length > 0 ? table(t("Buckets"), columns, buckets) : emptyBox(t("No buckets yet.")),
    ];
  });

async function showFolder(view, bucket, prefix) {
  const { buckets } = await api.get("/api/v1/buckets");
  const mayList = buckets.find(({ name }) => name === bucket)?.may_list ?? true;
  const rows = h("div");
  const upload = async (files) => {
    // Without the right to list, nothing is known about names: objects that exist are kept.
    const wanted = mayList ? await decided(bucket, prefix, files, false).catch(() => files) : files;
    if (wanted?.length) await add(bucket, wanted, { prefix });
  };
  const input = h("input", {
    type: "file",
    multiple: true,
    class: "hidden",
    tabindex: "-1",
    "aria-label": t("Files to upload"),
    onchange: () => {
      upload(chosen(input, prefix));
      input.value = "";
    },
  });
  const columns = [
    {
      name: t("Name"),
      cell: (row) =>
        row.key === undefined
          ? named(mark("folder"), row.prefix.slice(prefix.length), place("bucket", [bucket], { prefix: row.prefix }))
          : named(mark(row.content_type), row.key.slice(prefix.length) || "∅", place("object", [bucket, row.key])),
    },
    { name: t("Size"), align: "end", cell: (row) => (row.key === undefined ? "" : sizeCell(row.size)) },
    {
      name: t("Modified"),
      kind: "quiet",
      from: "medium",
      cell: (row) => (row.key === undefined ? "" : timeCell(row.last_modified)),
    },
  ];
  fill(
    view,
    viewHead(bucket, {
      path: link(t("Buckets"), place("buckets")),
      sign: "bucket",
      stone: stoneOf(bucket),
      actions: [button([icon("upload"), t("Upload files")], () => input.click(), "main"), input],
    }),
    h("div", { class: "path" }, h("nav", { "aria-label": t("Folders") }, crumbs(bucket, prefix))),
    rows,
  );
  const text = t("Drop to upload to {name}", { name: `${bucket}/${prefix}` });
  takeDrops(
    view,
    text,
    () => true,
    (transfer) => dropped(transfer, prefix).then(upload),
  );
  showUploads();
  if (!mayList) {
    fill(rows, emptyBox(t("You may upload here, but not see what is there.")));
    return undefined;
  }
  const list = pages(rows, {
    automatic: true,
    load: async (token) => {
      const query = { prefix, delimiter: "/", limit: PAGE, continuation_token: token };
      const page = await api.get(bucketPath(bucket, "objects"), query);
      const folders = page.common_prefixes.map((found) => ({ prefix: found }));
      return { rows: [...folders, ...page.objects], next: page.next_continuation_token };
    },
    draw: (all) => table(t("Objects in {name}", { name: `${bucket}/${prefix}` }), columns, all),
    empty: () =>
      emptyBox(prefix ? t("Nothing begins with this prefix.") : t("No objects yet. Drop files here or upload.")),
  });
  const ended = whenUploaded((target, key) => target === bucket && key.startsWith(prefix) && list.reload());
  await list.ready;
  return () => {
    list.stop();
    ended();
  };
}

export async function show(view, { parts: [bucket], parameters }) {
  if (bucket === undefined) return showBuckets(view);
  return showFolder(view, bucket, parameters.get("prefix") ?? "");
}
