// What an application does with the AWS SDK for JavaScript, one scenario per run:
//
//     node client.mjs objects|multipart|versions|locks|copies|refusals|stream <bucket> [<file>]
//
// Endpoint, keys, region and the checksum settings come from the usual AWS_* variables. It prints one JSON document of
// what the SDK answered; tests/e2e/clients/test_sdks.py judges it.

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import * as s3 from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";

const PART_BYTES = 5 * 1024 * 1024;
const [scenario, Bucket, file] = process.argv.slice(2);
const client = new s3.S3Client({ forcePathStyle: true, maxAttempts: 1 });
const send = (Command, input) => client.send(new s3[`${Command}Command`]({ Bucket, ...input }));
const sha256 = bytes => createHash("sha256").update(bytes).digest("hex");
const bytesOf = async answer => Buffer.from(await answer.Body.transformToByteArray());

// The code and status of a call that should be refused.
async function refusal(call) {
  try {
    await call;
    return "accepted";
  } catch (error) {
    return [error.name, error.$metadata?.httpStatusCode ?? null];
  }
}

const scenarios = {
  async objects() {
    const Body = Buffer.alloc(300_000, "objects ");
    const put = await send("PutObject", { Key: "a b+ü", Body, ContentType: "text/css", Metadata: { color: "green" } });
    const head = await send("HeadObject", { Key: "a b+ü" });
    const got = await bytesOf(await send("GetObject", { Key: "a b+ü" }));
    const piece = await bytesOf(await send("GetObject", { Key: "a b+ü", Range: "bytes=8-14" }));
    for (let number = 0; number < 5; number++) await send("PutObject", { Key: `list/${number}`, Body: "x" });
    const keys = [];
    for await (const page of s3.paginateListObjectsV2({ client, pageSize: 2 }, { Bucket })) {
      keys.push(...page.Contents.map(item => item.Key));
    }
    const taken = await refusal(send("PutObject", { Key: "a b+ü", Body: "x", IfNoneMatch: "*" }));
    await send("DeleteObject", { Key: "a b+ü" });
    const missing = await refusal(send("GetObject", { Key: "a b+ü" }));
    return {
      etag: put.ETag, type: head.ContentType, metadata: head.Metadata, digest: sha256(got), piece: piece.toString(), keys, taken, missing,
    };
  },

  async multipart() {
    const whole = await readFile(file);
    const managed = new Upload({
      client, params: { Bucket, Key: "managed", Body: createReadStream(file), ContentType: "video/mp4" }, partSize: PART_BYTES, queueSize: 3,
    });
    const done = await managed.done();
    const got = await bytesOf(await send("GetObject", { Key: "managed" }));

    const { UploadId } = await send("CreateMultipartUpload", { Key: "by-hand" });
    const upload = { Key: "by-hand", UploadId };
    const Parts = [];
    for (const PartNumber of [2, 1]) {
      const Body = whole.subarray((PartNumber - 1) * PART_BYTES, PartNumber * PART_BYTES);
      const { ETag, ChecksumCRC32 } = await send("UploadPart", { ...upload, PartNumber, Body });
      Parts.unshift({ PartNumber, ETag, ChecksumCRC32 });
    }
    const listed = (await send("ListParts", upload)).Parts.map(part => part.PartNumber);
    const uploads = (await send("ListMultipartUploads", {})).Uploads.length;
    const completed = await send("CompleteMultipartUpload", { ...upload, MultipartUpload: { Parts } });
    const byHand = await bytesOf(await send("GetObject", { Key: "by-hand" }));
    const part = await send("GetObject", { Key: "by-hand", PartNumber: 2 });
    const second = await bytesOf(part);

    const gone = { Key: "gone", UploadId: (await send("CreateMultipartUpload", { Key: "gone" })).UploadId };
    await send("AbortMultipartUpload", gone);
    return {
      etag: done.ETag, digest: sha256(got), listed, uploads, completed: completed.ETag, by_hand: sha256(byHand),
      parts_count: part.PartsCount, second: sha256(second), aborted: await refusal(send("ListParts", gone)),
      left: (await send("ListMultipartUploads", {})).Uploads?.length ?? 0,
    };
  },

  async versions() {
    await send("PutBucketVersioning", { VersioningConfiguration: { Status: "Enabled" } });
    const first = (await send("PutObject", { Key: "k", Body: "first" })).VersionId;
    const second = (await send("PutObject", { Key: "k", Body: "second" })).VersionId;
    const marker = await send("DeleteObject", { Key: "k" });
    const hidden = await refusal(send("GetObject", { Key: "k" }));
    const old = (await bytesOf(await send("GetObject", { Key: "k", VersionId: first }))).toString();
    const page = await send("ListObjectVersions", {});
    await send("DeleteObject", { Key: "k", VersionId: marker.VersionId });
    const restored = (await bytesOf(await send("GetObject", { Key: "k" }))).toString();
    return {
      status: (await send("GetBucketVersioning", {})).Status, ids: [first, second], marker: marker.DeleteMarker, hidden, old, restored,
      listed: page.Versions.map(item => item.VersionId), markers: page.DeleteMarkers.length,
    };
  },

  async locks() {
    await client.send(new s3.CreateBucketCommand({ Bucket, ObjectLockEnabledForBucket: true }));
    const day = 86_400_000, until = new Date(Math.floor(Date.now() / 1000) * 1000 + day);
    const { VersionId } = await send("PutObject", {
      Key: "k", Body: "locked", ObjectLockMode: "GOVERNANCE", ObjectLockRetainUntilDate: until, ChecksumAlgorithm: "SHA256",
    });
    const version = { Key: "k", VersionId };
    const kept = await refusal(send("DeleteObject", version));
    const { Retention } = await send("GetObjectRetention", version);
    await send("PutObjectLegalHold", { ...version, LegalHold: { Status: "ON" } });
    const held = await refusal(send("DeleteObject", { ...version, BypassGovernanceRetention: true }));
    await send("PutObjectLegalHold", { ...version, LegalHold: { Status: "OFF" } });
    const Compliance = { ...version, Retention: { Mode: "COMPLIANCE", RetainUntilDate: until } };
    const other_mode = await refusal(send("PutObjectRetention", Compliance));
    await send("PutObjectRetention", { ...Compliance, BypassGovernanceRetention: true });
    const compliant = await refusal(send("DeleteObject", { ...version, BypassGovernanceRetention: true }));
    await send("PutObjectLockConfiguration", {
      ObjectLockConfiguration: { ObjectLockEnabled: "Enabled", Rule: { DefaultRetention: { Mode: "GOVERNANCE", Days: 1 } } },
    });
    const { ObjectLockConfiguration } = await send("GetObjectLockConfiguration", {});
    return {
      mode: Retention.Mode, until: Retention.RetainUntilDate.getTime() === until.getTime(), kept, held, other_mode, compliant,
      default: [ObjectLockConfiguration.Rule.DefaultRetention.Mode, ObjectLockConfiguration.Rule.DefaultRetention.Days],
    };
  },

  async copies() {
    await send("PutObject", { Key: "a b+ü", Body: "copied", Metadata: { color: "green" } });
    const CopySource = encodeURI(`${Bucket}/a b`) + "%2B" + encodeURIComponent("ü");
    const copy = await send("CopyObject", { Key: "copy", CopySource });
    await send("CopyObject", { Key: "replaced", CopySource, MetadataDirective: "REPLACE", Metadata: { shape: "round" } });
    const got = await send("GetObject", { Key: "copy" });
    return {
      etag: copy.CopyObjectResult.ETag, body: (await bytesOf(got)).toString(), metadata: got.Metadata,
      replaced: (await send("HeadObject", { Key: "replaced" })).Metadata,
      condition: await refusal(send("CopyObject", { Key: "x", CopySource, CopySourceIfMatch: '"other"' })),
    };
  },

  async refusals() {
    await send("PutObject", { Key: "k", Body: "stays" });
    return {
      batch: await refusal(send("DeleteObjects", { Delete: { Objects: [{ Key: "k" }] } })),
      first: await refusal(send("ListObjects", {})),
      acl: await refusal(send("PutObject", { Key: "k", Body: "x", ACL: "public-read" })),
      stays: (await bytesOf(await send("GetObject", { Key: "k" }))).toString(),
    };
  },
};

// The SDK sends the checksum of a stream behind the body, unless it is told to leave it out.
scenarios.stream = async () => {
  const { size } = await stat(file);
  return { stream: await refusal(send("PutObject", { Key: "k", Body: createReadStream(file), ContentLength: size })) };
};

console.log(JSON.stringify(await scenarios[scenario]()));
