// The CORS rules of a bucket: a table, and a form for each rule.

import { api, bucketPath } from "./api.js";
import { ask, confirmed } from "./dialogs.js";
import { h } from "./dom.js";
import { draw } from "./navigation.js";
import { mayStore } from "./session.js";
import { t } from "./text.js";
import { acting, actionsColumn, button, emptyBox, field, quoted, table } from "./ui.js";

const METHODS = ["GET", "HEAD", "PUT", "POST", "DELETE"];
// A longer configuration would not fit on the screen.
const SHOWN_BYTES_MAX = 600;

const lines = (area) =>
  area.value
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

function editRule(bucket, rules, index) {
  const rule = rules[index] ?? {
    allowed_origins: [],
    allowed_methods: ["GET", "HEAD"],
    allowed_headers: [],
    expose_headers: [],
  };
  const area = (name, texts) => h("textarea", { name, rows: 3, spellcheck: "false", value: texts.join("\n") });
  const origins = area("allowed_origins", rule.allowed_origins);
  const headers = area("allowed_headers", rule.allowed_headers);
  const exposed = area("expose_headers", rule.expose_headers);
  const id = h("input", { name: "id", type: "text", maxlength: 255, value: rule.id ?? "", spellcheck: "false" });
  const seconds = h("input", {
    name: "max_age_seconds",
    type: "number",
    min: 0,
    max: 4294967295,
    value: rule.max_age_seconds ?? "",
  });
  const methods = METHODS.map((method) => [
    method,
    h("input", { name: "allowed_methods", type: "checkbox", checked: rule.allowed_methods.includes(method) }),
  ]);
  const changed = () => ({
    id: id.value || undefined,
    allowed_origins: lines(origins),
    allowed_methods: methods.filter(([, box]) => box.checked).map(([method]) => method),
    allowed_headers: lines(headers),
    expose_headers: lines(exposed),
    max_age_seconds: seconds.value === "" ? undefined : Number(seconds.value),
  });
  return ask({
    title: rules[index] ? t("Change CORS rule") : t("Add CORS rule"),
    action: rules[index] ? t("Save") : t("Add CORS rule"),
    content: [
      field(t("Origins"), origins, t("One per line: scheme://host or scheme://host:port, or * for all.")),
      h(
        "fieldset",
        null,
        h("legend", null, t("Methods")),
        methods.map(([method, box]) => h("label", { class: "check" }, box, h("code", null, method))),
      ),
      field(t("Request headers"), headers, t("One per line, with at most one * each. Pages may send these.")),
      field(t("Response headers"), exposed, t("One per line, such as ETag. Pages may read these.")),
      field(t("Browsers remember the answer for (seconds)"), seconds),
      field(t("Name of the rule"), id, t("Optional.")),
    ],
    submit: () => api.put(bucketPath(bucket, "cors"), { rules: rules.toSpliced(index, 1, changed()) }),
  });
}

function removeRule(bucket, rules, index) {
  const path = bucketPath(bucket, "cors");
  return rules.length === 1 ? api.remove(path) : api.put(path, { rules: rules.toSpliced(index, 1) });
}

/** Returns the section of a bucket's settings. */
export function corsSection(bucket, rules) {
  const remove = (index) =>
    acting(async () => {
      const text = t("Pages of these origins are refused by browsers at once.");
      if (await confirmed({ title: t("Delete CORS rule"), text, action: t("Delete CORS rule") }))
        await removeRule(bucket, rules, index);
    }, draw);
  const removeAll = acting(async () => {
    const text = t("No web page of another origin may use the bucket afterwards.");
    if (await confirmed({ title: t("Delete all CORS rules"), text, action: t("Delete all CORS rules") }))
      await api.remove(bucketPath(bucket, "cors"));
  }, draw);
  const edit = async (index) => (await editRule(bucket, rules, index)) && draw();
  const list = (texts) => texts.map((text) => h("div", null, h("code", null, text)));
  const rows = table(
    t("CORS rules"),
    [
      {
        name: t("Origins"),
        cell: ({ rule }) => [list(rule.allowed_origins), rule.id && h("div", { class: "muted small" }, rule.id)],
      },
      { name: t("Methods"), cell: ({ rule }) => rule.allowed_methods.join(", ") },
      { name: t("Request headers"), from: "medium", cell: ({ rule }) => list(rule.allowed_headers) },
      { name: t("Response headers"), from: "wide", cell: ({ rule }) => list(rule.expose_headers) },
      { name: t("Seconds"), from: "wide", align: "end", cell: ({ rule }) => rule.max_age_seconds ?? "–" },
      actionsColumn(
        ({ index }) =>
          mayStore() && [
            button(t("Change"), () => edit(index), "link"),
            button(t("Delete"), remove(index), "link danger"),
          ],
      ),
    ],
    rules.map((rule, index) => ({ rule, index })),
  );
  return [
    h("h2", null, t("CORS rules")),
    rules.length > 0 ? rows : emptyBox(t("No CORS rules: no web page of another origin may use the bucket.")),
    mayStore() &&
      h(
        "p",
        { class: "row" },
        button(t("Add CORS rule"), () => edit(rules.length)),
        rules.length > 1 && button(t("Delete all CORS rules"), removeAll, "danger"),
      ),
  ];
}

/** Returns the commands that do the same. */
export function corsCommands(bucket, rules) {
  const aws = (command) => `aws s3api ${command} --bucket ${quoted(bucket)}`;
  const configuration = JSON.stringify({
    CORSRules: rules.map((rule) => ({
      ID: rule.id,
      AllowedOrigins: rule.allowed_origins,
      AllowedMethods: rule.allowed_methods,
      AllowedHeaders: rule.allowed_headers.length > 0 ? rule.allowed_headers : undefined,
      ExposeHeaders: rule.expose_headers.length > 0 ? rule.expose_headers : undefined,
      MaxAgeSeconds: rule.max_age_seconds,
    })),
  });
  const shown = configuration.length > SHOWN_BYTES_MAX ? "file://cors.json" : quoted(configuration);
  const put = `${aws("put-bucket-cors")} --cors-configuration ${shown}`;
  const same = rules.length > 0 ? put : aws("get-bucket-cors");
  return [`cairn bucket cors ${quoted(bucket)}`, `${same} --endpoint-url $AWS_ENDPOINT_URL`];
}
