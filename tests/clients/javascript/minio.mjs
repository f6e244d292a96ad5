// The calls of the compatibility matrix with MinIO's client for JavaScript: one line of JSON in, one out.
//
// tests/client_matrix/clients/sdk.py describes the lines. Endpoint, keys and region come from the usual AWS_* variables.

import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { buffer } from "node:stream/consumers";
import { Client, CopyConditions } from "minio";

const PART_BYTES = 5 * 1024 * 1024;
const EXPIRY_SECONDS = 300;
const endpoint = new URL(process.env.AWS_ENDPOINT_URL);
const client = new Client({
  endPoint: endpoint.hostname,
  port: Number(endpoint.port),
  useSSL: endpoint.protocol === "https:",
  accessKey: process.env.AWS_ACCESS_KEY_ID,
  secretKey: process.env.AWS_SECRET_ACCESS_KEY,
  region: process.env.AWS_REGION,
  pathStyle: true,
  partSize: PART_BYTES,
  retryOptions: { disableRetry: true },
});

async function listed(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

const named = (tags) => Object.fromEntries(tags.map((tag) => [tag.Key, tag.Value]));

const calls = {
  make: ({ bucket }) => client.makeBucket(bucket, process.env.AWS_REGION),
  buckets: async () => (await client.listBuckets()).map((bucket) => bucket.name),
  drop: ({ bucket }) => client.removeBucket(bucket),
  upload: ({ bucket, key, file }) => client.fPutObject(bucket, key, file),
  download: async ({ bucket, key, version, file }) =>
    writeFile(file, await buffer(await client.getObject(bucket, key, version ? { versionId: version } : {}))),
  async pipe({ bucket, key, file }) {
    const stream = new PassThrough();
    createReadStream(file).pipe(stream);
    await client.putObject(bucket, key, stream);
  },
  part: async ({ bucket, key, first, last, file }) =>
    writeFile(file, await buffer(await client.getPartialObject(bucket, key, first, last - first + 1))),
  list: async ({ bucket }) => (await listed(client.listObjectsV2(bucket, "", true))).map((item) => item.name),
  folders: async ({ bucket }) =>
    (await listed(client.listObjectsV2(bucket, "", false))).flatMap((item) => item.prefix ?? []),
  link_to_get: ({ bucket, key }) => client.presignedGetObject(bucket, key, EXPIRY_SECONDS),
  link_to_put: ({ bucket, key }) => client.presignedPutObject(bucket, key, EXPIRY_SECONDS),
  remove: ({ bucket, key, version }) => client.removeObject(bucket, key, version ? { versionId: version } : {}),
  async remove_many({ bucket, keys }) {
    const failed = (await client.removeObjects(bucket, keys)).filter((item) => item?.Error);
    if (failed.length) throw new Error(JSON.stringify(failed[0].Error));
  },
  copy: ({ bucket, key, other }) =>
    client.copyObject(bucket, other, `/${bucket}/${key}`, new CopyConditions()),
  version_on: ({ bucket }) => client.setBucketVersioning(bucket, { Status: "Enabled" }),
  versions: async ({ bucket }) =>
    (await listed(client.listObjects(bucket, "", true, { IncludeVersion: true }))).map((item) => item.versionId),
  retain: ({ bucket, key, seconds }) =>
    client.putObjectRetention(bucket, key, {
      mode: "GOVERNANCE",
      retainUntilDate: new Date(Date.now() + seconds * 1000).toISOString(),
    }),
  retention: async ({ bucket, key }) => (await client.getObjectRetention(bucket, key)).mode,
  hold: ({ bucket, key, state }) => client.setObjectLegalHold(bucket, key, { status: state }),
  tag: ({ bucket, key, name, value }) => client.setObjectTagging(bucket, key, { [name]: value }),
  tags: async ({ bucket, key }) => named(await client.getObjectTagging(bucket, key)),
  tag_bucket: ({ bucket, name, value }) => client.setBucketTagging(bucket, { [name]: value }),
  tags_of_bucket: async ({ bucket }) => named(await client.getBucketTagging(bucket)),
};
// Calls whose results the caller reads; those of the others are answers of the server.
const READING = new Set([
  "buckets",
  "list",
  "folders",
  "link_to_get",
  "link_to_put",
  "versions",
  "retention",
  "tags",
  "tags_of_bucket",
]);

for await (const line of createInterface({ input: process.stdin })) {
  const { call, ...given } = JSON.parse(line);
  let answer;
  try {
    const result = await calls[call](given);
    answer = { result: READING.has(call) ? result : null };
  } catch (error) {
    answer = { error: `${error.code ?? error.name}: ${error.message}` };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
