// Imports, as the server knows them: runs with what has come in them, and the reports that it has signed.

import { api } from "./api.js";
import { chart, followPointer } from "./charts.js";
import { h } from "./dom.js";
import { place } from "./navigation.js";
import { mayAdminister } from "./session.js";
import { count, date, plural, size, t, when } from "./text.js";
import { acting, banner, button, card, emptyBox, link, sizeCell, table, tag, timeCell } from "./ui.js";

// A run without a request for so long has ended or waits.
const QUIET = 15_000;

const isActive = (run) => run.last_at && Date.now() - new Date(run.last_at) < QUIET;

// Bytes per second since the last look, and over the whole run.
function ratesOf(run, before) {
  const earlier = before?.imports.find((one) => one.import_id === run.import_id);
  const seconds = before ? (Date.now() - before.at) / 1000 : 0;
  const whole = run.last_at ? (new Date(run.last_at) - new Date(run.begun_at)) / 1000 : 0;
  return {
    now: earlier && seconds > 0.5 ? (run.bytes - earlier.bytes) / seconds : null,
    whole: whole > 1 ? run.bytes / whole : null,
  };
}

const figure = (number, text, kind = "") =>
  h("div", { class: `figure ${kind}` }, h("b", null, number), h("span", { class: "muted small" }, text));

function rateChart({ interval_seconds: length, until, bytes }) {
  const end = Date.parse(until);
  const begin = end - bytes.length * length * 1000;
  const times = bytes.map((_, index) => begin + (index + 1) * length * 1000);
  const shared = { times, seconds: bytes.map(() => length), begin, end };
  const made = chart({
    ...shared,
    title: t("Rate"),
    lines: [{ name: t("copied"), kind: "first", isArea: true, values: bytes.map((sum) => sum / length) }],
    text: (value) => `${size(value)}/s`,
  });
  const said = h("p", { class: "hidden", role: "status" });
  followPointer([made], shared, said);
  return [made.element, said];
}

function stateTag(run) {
  if (run.paused_at) return tag(t("Paused"), "warn", "clock");
  return isActive(run) ? tag(t("Copying"), "good", "retry") : tag(t("Quiet"), "", "clock");
}

// `data-run` says where the focus was when the card is made again.
function pauseButton(run, changed) {
  if (!mayAdminister() || !(run.paused_at || isActive(run))) return null;
  const change = (verb) => acting(() => api.post(`/api/v1/imports/${run.import_id}/${verb}`), changed);
  const made = run.paused_at
    ? button(t("Resume"), change("resume"), "row-button")
    : button(t("Pause"), change("pause"), "row-button");
  made.dataset.run = run.import_id;
  return made;
}

/** The card of the runs. `before` is `{at, imports}` of an earlier look. `changed` is called after a change. */
export function runsCard({ imports, since, rate: recent }, before, changed) {
  const note = h("p", { class: "hint" }, [
    t("The server does not know how much there is at the source: the program shows how far it is."),
    " ",
    t("Runs are known since {date}, when the service was started.", { date: date(since) }),
  ]);
  if (imports.length === 0) return [emptyBox(t("No import has begun yet. Runs appear here by themselves.")), note];
  const active = imports.filter(isActive);
  const sum = (name, runs) => runs.reduce((total, run) => total + run[name], 0);
  const shown = active.length > 0 ? active : imports.slice(0, 1);
  const rate = active.reduce((total, run) => total + (ratesOf(run, before).now ?? 0), 0);
  const figures = h(
    "section",
    { class: "card figures", "aria-label": t("Progress") },
    figure(size(sum("bytes", shown)), t("copied")),
    figure(count(sum("versions", shown)), t("versions")),
    figure(before && active.length > 0 ? `${size(rate)}/s` : "–", t("now")),
    figure(count(sum("unchanged", shown)), t("were here already")),
    figure(count(sum("failures", shown)), t("refused"), sum("failures", shown) > 0 ? "warn" : ""),
  );
  const failed = imports.filter((run) => run.last_failure);
  const refused = sum("failures", failed);
  return [
    figures,
    Math.max(...recent.bytes) > 0 && rateChart(recent),
    card(
      t("Runs"),
      plural(imports.length, "{n} run", "{n} runs"),
      table(
        t("Runs"),
        [
          {
            name: t("Bucket"),
            cell: (run) => [
              link(run.bucket, place("bucket", [run.bucket])),
              h("div", { class: "muted small key" }, run.source),
            ],
          },
          {
            name: t("State"),
            cell: (run) => [stateTag(run), " ", pauseButton(run, changed)],
          },
          {
            name: t("Copied"),
            align: "end",
            cell: (run) => {
              const { whole } = ratesOf(run, before);
              return [
                sizeCell(run.bytes),
                whole !== null && h("div", { class: "muted small", title: t("On average") }, `${size(whole)}/s`),
              ];
            },
          },
          { name: t("Versions"), align: "end", label: t("versions"), cell: (run) => count(run.versions) },
          {
            name: t("Began"),
            kind: "quiet",
            from: "medium",
            cell: (run) => [
              timeCell(run.begun_at),
              run.last_at && h("div", { class: "small" }, t("last {time}", { time: when(run.last_at) })),
            ],
          },
        ],
        imports,
      ),
    ),
    failed.length > 0 &&
      card(
        t("To look at later"),
        plural(refused, "{n} refusal", "{n} refusals"),
        h(
          "ul",
          { class: "plan" },
          failed.map(({ bucket, failures, last_failure: last }) =>
            h(
              "li",
              null,
              h(
                "div",
                null,
                h(
                  "b",
                  null,
                  plural(failures, "{bucket}: {n} request was refused", "{bucket}: {n} requests were refused", {
                    bucket,
                  }),
                ),
                h("div", { class: "key" }, last.key),
                h(
                  "div",
                  { class: "muted small" },
                  h("span", { lang: "en" }, `${last.code}: ${last.message}`),
                  " · ",
                  timeCell(last.time),
                ),
              ),
            ),
          ),
        ),
        h("p", { class: "hint" }, t("What did not come is in failures.jsonl, in the folder of the journal.")),
      ),
    note,
  ];
}

const number = (value) => (Number.isSafeInteger(value) && value > 0 ? value : 0);

// What a report says. A client has written it: nothing in it is taken for granted.
function readReport({ payload }) {
  const { results } = payload;
  if (!Array.isArray(results?.buckets)) return null;
  return {
    source: String(payload.source ?? ""),
    at: String(payload.signed_at ?? ""),
    differences: number(results.differences),
    buckets: results.buckets.filter((bucket) => typeof bucket?.bucket === "string").slice(0, 1000),
  };
}

function save(report) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(report, null, 2)], { type: "application/json" }));
  const made = h("a", { href: url, download: "import-report.json" });
  document.body.append(made);
  made.click();
  made.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function drawReport(proof, { source, at, differences, buckets }) {
  const versions = buckets.reduce((sum, bucket) => sum + number(bucket.versions), 0);
  return [
    banner(
      differences === 0 ? "good" : "bad",
      [
        h(
          "b",
          null,
          differences === 0
            ? plural(versions, "{n} version is the same on both sides.", "All {n} versions are the same on both sides.")
            : plural(differences, "{n} difference was found.", "{n} differences were found."),
        ),
        h("div", { class: "muted small key" }, t("{source}, signed {date}", { source, date: date(at) })),
      ],
      button(t("Signed report"), () => save(proof)),
    ),
    card(
      t("Compared"),
      null,
      table(
        t("Compared"),
        [
          { name: t("Bucket"), cell: (row) => link(row.bucket, place("bucket", [row.bucket])) },
          { name: t("Versions"), align: "end", label: t("versions"), cell: (row) => count(number(row.versions)) },
          { name: t("Size"), align: "end", cell: (row) => sizeCell(number(row.bytes)) },
          {
            name: t("Read and compared"),
            align: "end",
            from: "medium",
            cell: (row) => sizeCell(number(row.read_bytes)),
          },
          {
            name: t("Written here since"),
            align: "end",
            from: "wide",
            cell: (row) => count(number(row.written_here)),
          },
          {
            name: t("Different"),
            align: "end",
            cell: (row) =>
              number(row.differences) === 0 ? tag(t("Same"), "good") : tag(count(number(row.differences)), "bad"),
          },
        ],
        buckets,
      ),
    ),
  ];
}

/** The cards of the reports that were signed, the latest first. */
export function reportCards({ reports, since }) {
  const shown = reports.map((proof) => [proof, readReport(proof)]).filter(([, report]) => report);
  const note = h(
    "p",
    { class: "hint" },
    t("Reports that were signed since {date}.", {
      date: date(since),
    }),
  );
  if (shown.length === 0) return [emptyBox(t("No comparison has been signed yet.")), note];
  return [shown.map(([proof, report]) => drawReport(proof, report)), note];
}
