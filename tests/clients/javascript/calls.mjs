// The calls of the compatibility matrix with the AWS SDK for JavaScript: one line of JSON in, one out.
//
// tests/client_matrix/clients/sdk.py describes the lines. Endpoint, keys and region come from the usual AWS_* variables.

import { createReadStream, createWriteStream } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { pipeline } from "node:stream/promises";
import { PassThrough } from "node:stream";
import * as s3 from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";

const PART_BYTES = 5 * 1024 * 1024;
const COPY_WHOLE_BYTES = (process.env.CAIRN_RECOMMENDED ? 5 * 1024 : 32) * 1024 * 1024;
const client = new s3.S3Client({ forcePathStyle: true, maxAttempts: 1 });
const send = (name, input) => client.send(new s3[`${name}Command`](input));
const named = tags => Object.fromEntries(tags.map(tag => [tag.Key, tag.Value]));
const link = (name, { bucket, key }) => getSignedUrl(client, new s3[`${name}Command`]({ Bucket: bucket, Key: key }), { expiresIn: 300 });

async function managed({ bucket, key }, Body) {
  await new Upload({ client, params: { Bucket: bucket, Key: key, Body }, partSize: PART_BYTES }).done();
}

// Large objects are copied in pieces, as an application does above 5 GiB.
async function copy({ bucket, key, other }) {
  const CopySource = `${bucket}/${encodeURIComponent(key)}`;
  const size = (await send("HeadObject", { Bucket: bucket, Key: key })).ContentLength;
  if (size <= COPY_WHOLE_BYTES) return void (await send("CopyObject", { Bucket: bucket, Key: other, CopySource }));
  const upload = { Bucket: bucket, Key: other, UploadId: (await send("CreateMultipartUpload", { Bucket: bucket, Key: other })).UploadId };
  const Parts = [];
  for (let first = 0; first < size; first += COPY_WHOLE_BYTES) {
    const PartNumber = Parts.length + 1, last = Math.min(first + COPY_WHOLE_BYTES, size) - 1;
    const { CopyPartResult } = await send("UploadPartCopy", { ...upload, PartNumber, CopySource, CopySourceRange: `bytes=${first}-${last}` });
    Parts.push({ PartNumber, ETag: CopyPartResult.ETag });
  }
  await send("CompleteMultipartUpload", { ...upload, MultipartUpload: { Parts } });
}

const calls = {
  make: ({ bucket }) => send("CreateBucket", { Bucket: bucket }),
  buckets: async () => (await send("ListBuckets", {})).Buckets.map(bucket => bucket.Name),
  drop: ({ bucket }) => send("DeleteBucket", { Bucket: bucket }),
  async upload(given) {
    const Body = await readFile(given.file);
    if (Body.length > PART_BYTES) return managed(given, createReadStream(given.file));
    await send("PutObject", { Bucket: given.bucket, Key: given.key, Body });
  },
  async download({ bucket, key, version, file }) {
    const { Body } = await send("GetObject", { Bucket: bucket, Key: key, VersionId: version });
    await pipeline(Body, createWriteStream(file));
  },
  async pipe(given) {
    const stream = new PassThrough();
    createReadStream(given.file).pipe(stream);
    await managed(given, stream);
  },
  async part({ bucket, key, first, last, file }) {
    const { Body } = await send("GetObject", { Bucket: bucket, Key: key, Range: `bytes=${first}-${last}` });
    await writeFile(file, await Body.transformToByteArray());
  },
  async list({ bucket }) {
    const keys = [];
    for await (const page of s3.paginateListObjectsV2({ client }, { Bucket: bucket })) keys.push(...page.Contents.map(item => item.Key));
    return keys;
  },
  folders: async ({ bucket }) => (await send("ListObjectsV2", { Bucket: bucket, Delimiter: "/" })).CommonPrefixes.map(item => item.Prefix),
  link_to_get: given => link("GetObject", given),
  link_to_put: given => link("PutObject", given),
  remove: ({ bucket, key, version }) => send("DeleteObject", { Bucket: bucket, Key: key, VersionId: version }),
  async remove_many({ bucket, keys }) {
    const { Errors } = await send("DeleteObjects", { Bucket: bucket, Delete: { Objects: keys.map(Key => ({ Key })) } });
    if (Errors?.length) throw new Error(`${Errors[0].Code}: ${Errors[0].Message}`);
  },
  copy,
  version_on: ({ bucket }) => send("PutBucketVersioning", { Bucket: bucket, VersioningConfiguration: { Status: "Enabled" } }),
  versions: async ({ bucket }) => (await send("ListObjectVersions", { Bucket: bucket })).Versions.map(item => item.VersionId),
  retain: ({ bucket, key, seconds }) =>
    send("PutObjectRetention", { Bucket: bucket, Key: key, Retention: { Mode: "GOVERNANCE", RetainUntilDate: new Date(Date.now() + seconds * 1000) } }),
  retention: async ({ bucket, key }) => (await send("GetObjectRetention", { Bucket: bucket, Key: key })).Retention.Mode,
  hold: ({ bucket, key, state }) => send("PutObjectLegalHold", { Bucket: bucket, Key: key, LegalHold: { Status: state } }),
  tag: ({ bucket, key, name, value }) => send("PutObjectTagging", { Bucket: bucket, Key: key, Tagging: { TagSet: [{ Key: name, Value: value }] } }),
  tags: async ({ bucket, key }) => named((await send("GetObjectTagging", { Bucket: bucket, Key: key })).TagSet),
  tag_bucket: ({ bucket, name, value }) => send("PutBucketTagging", { Bucket: bucket, Tagging: { TagSet: [{ Key: name, Value: value }] } }),
  tags_of_bucket: async ({ bucket }) => named((await send("GetBucketTagging", { Bucket: bucket })).TagSet),
};
// Calls whose results the caller reads; those of the others are answers of the server.
const READING = new Set(["buckets", "list", "folders", "link_to_get", "link_to_put", "versions", "retention", "tags", "tags_of_bucket"]);

for await (const line of createInterface({ input: process.stdin })) {
  const { call, ...given } = JSON.parse(line);
  let answer;
  try {
    const result = await calls[call](given);
    answer = { result: READING.has(call) ? result : null };
  } catch (error) {
    answer = { error: `${error.name}: ${error.message}` };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
