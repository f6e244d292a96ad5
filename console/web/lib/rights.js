// The rights of accounts in a bucket, as their policies say it.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { place } from "./navigation.js";
import { isEffective, PREFIX } from "./policy-words.js";
import { t } from "./text.js";
import { avatar, emptyBox, link, table, tag } from "./ui.js";

// More accounts would make a page that nobody reads.
const SHOWN_MAX = 200;
const PREFIXES_MAX = 2;

/**
 * Returns where a resource applies in a bucket: a prefix of keys, empty for everywhere, `null` for nowhere. A pattern
 * that ends inside the name of the bucket covers all of it.
 */
export function reach(resource, bucket, action) {
  const place = resource.replace(PREFIX, "");
  if (!isEffective(action, place)) return null;
  const slash = place.indexOf("/");
  if (slash < 0) {
    const isCovered = place.endsWith("*") ? bucket.startsWith(place.slice(0, -1)) : place === bucket;
    return isCovered ? "" : null;
  }
  if (place.slice(0, slash) !== bucket) return null;
  const key = place.slice(slash + 1);
  return key.endsWith("*") ? key.slice(0, -1) : `${key}\u0000`;
}

// What the statements say about one action: where it is allowed and denied, from which networks (none: from all).
function rightsOf(statements, action, bucket) {
  const found = { allow: new Map(), deny: new Map(), isCreateOnly: true };
  for (const statement of statements) {
    if (!statement.actions.includes(action)) continue;
    const places = found[statement.effect];
    const networks = statement.source_ip ?? [];
    for (const resource of statement.resources) {
      const prefix = reach(resource, bucket, action);
      if (prefix === null) continue;
      const before = places.get(prefix);
      // A statement without networks applies to all of them.
      const all = before?.length === 0 || networks.length === 0 ? [] : [...new Set([...(before ?? []), ...networks])];
      places.set(prefix, all);
      if (statement.effect === "allow" && !statement.only_if_absent) found.isCreateOnly = false;
    }
  }
  return found;
}

const shownPrefix = (prefix) => h("code", { class: "tag" }, prefix.replace("\u0000", ""));

function cellOf(statements, action, bucket) {
  const { allow, deny, isCreateOnly } = rightsOf(statements, action, bucket);
  if (deny.get("")?.length === 0)
    return h("span", { class: "bad", title: t("denied") }, icon("ban"), h("span", { class: "hidden" }, t("denied")));
  if (allow.size === 0) return h("span", { class: "muted" }, "–");
  // What is allowed everywhere and from everywhere says all.
  const prefixes = allow.get("")?.length === 0 ? [""] : [...allow.keys()];
  const from = new Set(prefixes.flatMap((prefix) => allow.get(prefix)));
  const notFrom = deny.get("") ?? [];
  const isPartly = deny.size > (deny.has("") ? 1 : 0);
  const isNetworkOnly = prefixes.every((prefix) => allow.get(prefix).length > 0);
  return [
    prefixes.includes("")
      ? h("span", { class: "yes", title: t("allowed") }, icon("check"), h("span", { class: "hidden" }, t("allowed")))
      : [prefixes.slice(0, PREFIXES_MAX).map(shownPrefix), prefixes.length > PREFIXES_MAX && " …"],
    action === "s3:PutObject" && isCreateOnly && tag(t("create only")),
    isPartly && tag(t("not everywhere"), "bad", "ban"),
    from.size > 0 &&
      h(
        "div",
        { class: "muted small" },
        t(isNetworkOnly ? "from {networks}" : "partly from {networks}", { networks: [...from].join(", ") }),
      ),
    notFrom.length > 0 &&
      h("div", { class: "muted small" }, t("not from {networks}", { networks: notFrom.join(", ") })),
  ];
}

/** Returns a table of the accounts that may do something in a bucket. */
export function rightsTable(bucket, accounts, policies) {
  const byId = new Map(policies.map((policy) => [policy.id, policy]));
  const rows = accounts
    .map((account) => {
      const own = account.policies.map(({ id }) => byId.get(id)).filter(Boolean);
      const mine = own.filter((policy) =>
        policy.statements.some(({ actions, resources }) =>
          resources.some((resource) => actions.some((action) => reach(resource, bucket, action) !== null)),
        ),
      );
      return { account, policies: mine, statements: mine.flatMap((policy) => policy.statements) };
    })
    .filter((row) => row.policies.length > 0);
  // On a phone the heads are not shown, so each cell has its name.
  const right = (name, action) => ({
    name,
    cell: (row) => [h("span", { class: "muted on-phones" }, name, " "), cellOf(row.statements, action, bucket)],
  });
  return h(
    "section",
    { class: "rights" },
    h("h2", null, t("Who can do what here")),
    rows.length === 0
      ? emptyBox(t("No policy of an account is about this bucket."))
      : table(
          t("Who can do what here"),
          [
            {
              name: t("Who"),
              cell: ({ account }) =>
                h(
                  "span",
                  { class: "person" },
                  avatar(account.name),
                  link(account.name, place("account", [account.id])),
                  !account.enabled && tag(t("off"), "warn"),
                ),
            },
            right(t("List"), "s3:ListBucket"),
            right(t("Read"), "s3:GetObject"),
            right(t("Write"), "s3:PutObject"),
            right(t("Delete"), "s3:DeleteObject"),
            right(t("Manage"), "s3:ManageBucket"),
            {
              name: t("Through"),
              from: "medium",
              cell: (row) =>
                row.policies.map((policy, index) => [
                  index > 0 && ", ",
                  link(policy.name, place("policy", [policy.id])),
                ]),
            },
          ],
          rows.slice(0, SHOWN_MAX),
        ),
    h("p", { class: "hint" }, t("The root credential may do everything. A folder means: only there.")),
  );
}
