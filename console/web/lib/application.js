// Applications: an account, a policy and a bucket, made as `cairn app create` makes them, and the settings to paste.

import { api, bucketPath, REGION } from "./api.js";
import { protect } from "./first-steps.js";
import { t } from "./text.js";

/** The rights of an application: the word of the command line, a name and what it means. */
export const rightsChoices = () => [
  ["read-only", t("Read"), t("List and download objects")],
  ["read-write", t("Read and write"), t("Also upload, replace and delete")],
  ["create-only", t("Create only"), t("Read, and upload new objects. Never replace or delete.")],
];

const DESCRIPTIONS = {
  "create-only": "List, read, and write new objects; overwrite and delete nothing",
  "read-only": "List and read",
  "read-write": "List, read, write and delete",
};

/** Returns the statements of a template, as the command line has them. */
export function templateStatements(rights, bucket, prefix) {
  const objects = `bucket:${bucket}/${prefix}*`;
  const allow = (actions, resource, more) => ({ effect: "allow", actions, resources: [resource], ...more });
  const ofObjects = {
    "create-only": [allow(["s3:GetObject"], objects), allow(["s3:PutObject"], objects, { only_if_absent: true })],
    "read-only": [allow(["s3:GetObject"], objects)],
    "read-write": [allow(["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], objects)],
  };
  return [allow(["s3:ListBucket"], `bucket:${bucket}`), ...ofObjects[rights]];
}

/**
 * Makes what an application needs. If a step fails, what was made before is removed. Returns what was made, and a
 * function that removes all of it.
 */
export async function createApplication({ name, bucket, isNew, keepsVersions, quota, prefix, rights }) {
  const undo = [];
  const undoAll = async () => {
    while (undo.length > 0) {
      await undo.at(-1)();
      undo.pop();
    }
  };
  try {
    const policy = await api.post("/api/v1/policies", {
      name,
      description: DESCRIPTIONS[rights],
      statements: templateStatements(rights, bucket, prefix),
    });
    undo.push(() => api.remove(`/api/v1/policies/${policy.id}`));
    if (isNew) {
      await api.post("/api/v1/buckets", { name: bucket, object_lock: false });
      undo.push(() => api.remove(bucketPath(bucket)));
      if (keepsVersions) await protect(bucket);
      if (quota)
        await api.put(bucketPath(bucket, "quota"), {
          quota: { bytes: { mode: "limit", bytes: quota }, objects: { mode: "unlimited" } },
        });
    }
    const { service_account: account, credential } = await api.post("/api/v1/service-accounts", {
      name,
      description: `Application: ${rights} on ${bucket}/${prefix}*`,
    });
    undo.push(() => api.remove(`/api/v1/service-accounts/${account.id}`));
    await api.put(`/api/v1/policies/${policy.id}/bindings/${account.id}`);
    return { account, credential, policy, undoAll };
  } catch (error) {
    await undoAll().catch(() => {});
    throw error;
  }
}

// Replaces a word, but not where it is a part of a name such as AWS_ACCESS_KEY_ID.
const withWord = (text, word, value) => text.replace(new RegExp(`(?<!\\w)${word}(?!\\w)`, "g"), () => value);

/** Returns the settings of a client, as blocks `{place, text}`. */
export function settingsOf(client, { name, bucket, prefix, endpoint, isStrict, accessKey, secretKey }) {
  const url = new URL(endpoint);
  const isSecure = url.protocol === "https:";
  const holds = { http: !isSecure, prefix: prefix !== "", strict: isStrict, tls: isSecure };
  const applies = (when) => when.split(" ").every((one) => (one.startsWith("!") ? !holds[one.slice(1)] : holds[one]));
  const path = prefix ? prefix.replace(/\/+$/, "") : name;
  const values = {
    endpoint: endpoint.replace(/\/$/, ""),
    authority: url.host,
    scheme: url.protocol.slice(0, -1),
    host: url.hostname,
    port: url.port || (isSecure ? "443" : "80"),
    region: REGION,
    secure: String(isSecure),
    Secure: isSecure ? "True" : "False",
  };
  const fill = (text) => {
    let made = text.replace(/\{(\w+)\}/g, (whole, word) => values[word] ?? whole);
    made = withWord(made, "ACCESS_KEY", accessKey);
    made = withWord(made, "SECRET_KEY", secretKey);
    made = withWord(made, "BUCKET", bucket);
    return /^[\w./-]+$/.test(path) ? withWord(made, "PATH", path) : made;
  };
  return client.blocks.map(({ place, lines }) => ({
    place,
    text: lines
      .filter((line) => typeof line === "string" || applies(line[0]))
      .map((line) => fill(typeof line === "string" ? line : line[1]))
      .join("\n"),
  }));
}
