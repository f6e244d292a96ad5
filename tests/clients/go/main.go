// What an application does with the AWS SDK for Go v2, one scenario per run:
//
//	go-client objects|multipart|versions|locks|copies|refusals <bucket> [<file>]
//	go-client calls < lines of JSON
//
// Endpoint, keys, region and the checksum settings come from the usual AWS_* variables. It prints one JSON document of
// what the SDK answered; tests/e2e/clients/test_sdks.py judges it.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

const partBytes = 5 << 20

// seen is what a scenario reports.
type seen map[string]any

// program holds what every scenario needs.
type program struct {
	ctx    context.Context
	client *s3.Client
	bucket *string
	file   string
}

// must ends the program with the error of a call that should succeed.
func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

// refusal gives the code and status of a call that should be refused.
func refusal[T any](_ T, err error) any {
	if err == nil {
		return "accepted"
	}
	var api smithy.APIError
	var response *awshttp.ResponseError
	if !errors.As(err, &api) || !errors.As(err, &response) {
		return err.Error()
	}
	return []any{api.ErrorCode(), response.HTTPStatusCode()}
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (p *program) put(key string, body string) *s3.PutObjectOutput {
	return must(p.client.PutObject(p.ctx, &s3.PutObjectInput{Bucket: p.bucket, Key: &key, Body: bytes.NewReader([]byte(body))}))
}

func (p *program) get(key string, version *string) []byte {
	output := must(p.client.GetObject(p.ctx, &s3.GetObjectInput{Bucket: p.bucket, Key: &key, VersionId: version}))
	defer output.Body.Close()
	return must(io.ReadAll(output.Body))
}

func (p *program) remove(key string, version *string, bypass *bool) (*s3.DeleteObjectOutput, error) {
	return p.client.DeleteObject(p.ctx, &s3.DeleteObjectInput{
		Bucket: p.bucket, Key: &key, VersionId: version, BypassGovernanceRetention: bypass,
	})
}

func (p *program) objects() seen {
	key, body := "a b+ü", bytes.Repeat([]byte("objects "), 37_500)
	output := must(p.client.PutObject(p.ctx, &s3.PutObjectInput{
		Bucket: p.bucket, Key: &key, Body: bytes.NewReader(body), ContentType: aws.String("text/css"),
		Metadata: map[string]string{"color": "green"},
	}))
	head := must(p.client.HeadObject(p.ctx, &s3.HeadObjectInput{Bucket: p.bucket, Key: &key}))
	got, piece := p.get(key, nil), must(p.client.GetObject(p.ctx, &s3.GetObjectInput{
		Bucket: p.bucket, Key: &key, Range: aws.String("bytes=8-14"),
	}))
	for number := range 5 {
		p.put(fmt.Sprintf("list/%d", number), "x")
	}
	keys := []string{}
	pages := s3.NewListObjectsV2Paginator(p.client, &s3.ListObjectsV2Input{Bucket: p.bucket, MaxKeys: aws.Int32(2)})
	for pages.HasMorePages() {
		for _, item := range must(pages.NextPage(p.ctx)).Contents {
			keys = append(keys, *item.Key)
		}
	}
	taken := refusal(p.client.PutObject(p.ctx, &s3.PutObjectInput{
		Bucket: p.bucket, Key: &key, Body: bytes.NewReader(nil), IfNoneMatch: aws.String("*"),
	}))
	must(p.remove(key, nil, nil))
	missing := refusal(p.client.GetObject(p.ctx, &s3.GetObjectInput{Bucket: p.bucket, Key: &key}))
	return seen{
		"etag": output.ETag, "type": head.ContentType, "metadata": head.Metadata, "digest": digest(got),
		"piece": string(must(io.ReadAll(piece.Body))), "keys": keys, "taken": taken, "missing": missing,
	}
}

func (p *program) multipart() seen {
	whole := must(os.ReadFile(p.file))
	source := must(os.Open(p.file))
	defer source.Close()
	uploader := manager.NewUploader(p.client, func(u *manager.Uploader) {
		u.PartSize, u.Concurrency = partBytes, 3
		// The uploader has a setting of its own, which does not follow the client's.
		u.RequestChecksumCalculation = p.client.Options().RequestChecksumCalculation
	})
	managed := must(uploader.Upload(p.ctx, &s3.PutObjectInput{Bucket: p.bucket, Key: aws.String("managed"), Body: source}))
	target := manager.NewWriteAtBuffer(nil)
	downloader := manager.NewDownloader(p.client, func(d *manager.Downloader) { d.PartSize, d.Concurrency = partBytes, 3 })
	must(downloader.Download(p.ctx, target, &s3.GetObjectInput{Bucket: p.bucket, Key: aws.String("managed")}))

	key := aws.String("by-hand")
	created := must(p.client.CreateMultipartUpload(p.ctx, &s3.CreateMultipartUploadInput{Bucket: p.bucket, Key: key}))
	parts := make([]types.CompletedPart, 2)
	for _, number := range []int32{2, 1} {
		body := whole[(number-1)*partBytes : min(int(number)*partBytes, len(whole))]
		part := must(p.client.UploadPart(p.ctx, &s3.UploadPartInput{
			Bucket: p.bucket, Key: key, UploadId: created.UploadId, PartNumber: aws.Int32(number), Body: bytes.NewReader(body),
		}))
		parts[number-1] = types.CompletedPart{PartNumber: aws.Int32(number), ETag: part.ETag, ChecksumCRC32: part.ChecksumCRC32}
	}
	listed := []int32{}
	for _, part := range must(p.client.ListParts(p.ctx, &s3.ListPartsInput{Bucket: p.bucket, Key: key, UploadId: created.UploadId})).Parts {
		listed = append(listed, *part.PartNumber)
	}
	uploads := len(must(p.client.ListMultipartUploads(p.ctx, &s3.ListMultipartUploadsInput{Bucket: p.bucket})).Uploads)
	completed := must(p.client.CompleteMultipartUpload(p.ctx, &s3.CompleteMultipartUploadInput{
		Bucket: p.bucket, Key: key, UploadId: created.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}))
	part := must(p.client.GetObject(p.ctx, &s3.GetObjectInput{Bucket: p.bucket, Key: key, PartNumber: aws.Int32(2)}))
	second := must(io.ReadAll(part.Body))

	gone := must(p.client.CreateMultipartUpload(p.ctx, &s3.CreateMultipartUploadInput{Bucket: p.bucket, Key: aws.String("gone")}))
	must(p.client.AbortMultipartUpload(p.ctx, &s3.AbortMultipartUploadInput{
		Bucket: p.bucket, Key: aws.String("gone"), UploadId: gone.UploadId,
	}))
	aborted := refusal(p.client.ListParts(p.ctx, &s3.ListPartsInput{Bucket: p.bucket, Key: aws.String("gone"), UploadId: gone.UploadId}))
	return seen{
		"etag": managed.ETag, "digest": digest(target.Bytes()), "listed": listed, "uploads": uploads, "completed": completed.ETag,
		"by_hand": digest(p.get("by-hand", nil)), "parts_count": part.PartsCount, "second": digest(second), "aborted": aborted,
		"left": len(must(p.client.ListMultipartUploads(p.ctx, &s3.ListMultipartUploadsInput{Bucket: p.bucket})).Uploads),
	}
}

func (p *program) versions() seen {
	must(p.client.PutBucketVersioning(p.ctx, &s3.PutBucketVersioningInput{
		Bucket: p.bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	}))
	first, second := p.put("k", "first").VersionId, p.put("k", "second").VersionId
	marker := must(p.remove("k", nil, nil))
	hidden := refusal(p.client.GetObject(p.ctx, &s3.GetObjectInput{Bucket: p.bucket, Key: aws.String("k")}))
	old := string(p.get("k", first))
	listed, markers := []string{}, 0
	pages := s3.NewListObjectVersionsPaginator(p.client, &s3.ListObjectVersionsInput{Bucket: p.bucket, MaxKeys: aws.Int32(1)})
	for pages.HasMorePages() {
		page := must(pages.NextPage(p.ctx))
		for _, item := range page.Versions {
			listed = append(listed, *item.VersionId)
		}
		markers += len(page.DeleteMarkers)
	}
	must(p.remove("k", marker.VersionId, nil))
	status := must(p.client.GetBucketVersioning(p.ctx, &s3.GetBucketVersioningInput{Bucket: p.bucket})).Status
	return seen{
		"status": status, "ids": []*string{first, second}, "marker": marker.DeleteMarker, "hidden": hidden, "old": old,
		"restored": string(p.get("k", nil)), "listed": listed, "markers": markers,
	}
}

func (p *program) locks() seen {
	must(p.client.CreateBucket(p.ctx, &s3.CreateBucketInput{Bucket: p.bucket, ObjectLockEnabledForBucket: aws.Bool(true)}))
	key, until := aws.String("k"), time.Now().Add(24*time.Hour).Truncate(time.Second)
	version := must(p.client.PutObject(p.ctx, &s3.PutObjectInput{
		Bucket: p.bucket, Key: key, Body: bytes.NewReader([]byte("locked")), ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
		ObjectLockMode: types.ObjectLockModeGovernance, ObjectLockRetainUntilDate: &until,
	})).VersionId
	hold := func(status types.ObjectLockLegalHoldStatus) {
		must(p.client.PutObjectLegalHold(p.ctx, &s3.PutObjectLegalHoldInput{
			Bucket: p.bucket, Key: key, VersionId: version, LegalHold: &types.ObjectLockLegalHold{Status: status},
		}))
	}
	kept := refusal(p.remove("k", version, nil))
	found := must(p.client.GetObjectRetention(p.ctx, &s3.GetObjectRetentionInput{Bucket: p.bucket, Key: key, VersionId: version})).Retention
	hold(types.ObjectLockLegalHoldStatusOn)
	held := refusal(p.remove("k", version, aws.Bool(true)))
	hold(types.ObjectLockLegalHoldStatusOff)
	compliance := &s3.PutObjectRetentionInput{
		Bucket: p.bucket, Key: key, VersionId: version,
		Retention: &types.ObjectLockRetention{Mode: types.ObjectLockRetentionModeCompliance, RetainUntilDate: &until},
	}
	otherMode := refusal(p.client.PutObjectRetention(p.ctx, compliance))
	compliance.BypassGovernanceRetention = aws.Bool(true)
	must(p.client.PutObjectRetention(p.ctx, compliance))
	compliant := refusal(p.remove("k", version, aws.Bool(true)))
	must(p.client.PutObjectLockConfiguration(p.ctx, &s3.PutObjectLockConfigurationInput{
		Bucket: p.bucket, ObjectLockConfiguration: &types.ObjectLockConfiguration{
			ObjectLockEnabled: types.ObjectLockEnabledEnabled,
			Rule: &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{
				Mode: types.ObjectLockRetentionModeGovernance, Days: aws.Int32(1),
			}},
		},
	}))
	rule := must(p.client.GetObjectLockConfiguration(p.ctx, &s3.GetObjectLockConfigurationInput{Bucket: p.bucket})).ObjectLockConfiguration.Rule
	return seen{
		"mode": found.Mode, "until": found.RetainUntilDate.Equal(until), "kept": kept, "held": held, "other_mode": otherMode,
		"compliant": compliant,
		"default":   []any{rule.DefaultRetention.Mode, rule.DefaultRetention.Days},
	}
}

func (p *program) copies() seen {
	must(p.client.PutObject(p.ctx, &s3.PutObjectInput{
		Bucket: p.bucket, Key: aws.String("a b+ü"), Body: bytes.NewReader([]byte("copied")), Metadata: map[string]string{"color": "green"},
	}))
	source := aws.String(*p.bucket + "/" + strings.ReplaceAll(url.PathEscape("a b+ü"), "+", "%2B"))
	copied := must(p.client.CopyObject(p.ctx, &s3.CopyObjectInput{Bucket: p.bucket, Key: aws.String("copy"), CopySource: source}))
	must(p.client.CopyObject(p.ctx, &s3.CopyObjectInput{
		Bucket: p.bucket, Key: aws.String("replaced"), CopySource: source, MetadataDirective: types.MetadataDirectiveReplace,
		Metadata: map[string]string{"shape": "round"},
	}))
	head := must(p.client.HeadObject(p.ctx, &s3.HeadObjectInput{Bucket: p.bucket, Key: aws.String("copy")}))
	replaced := must(p.client.HeadObject(p.ctx, &s3.HeadObjectInput{Bucket: p.bucket, Key: aws.String("replaced")}))
	condition := refusal(p.client.CopyObject(p.ctx, &s3.CopyObjectInput{
		Bucket: p.bucket, Key: aws.String("x"), CopySource: source, CopySourceIfMatch: aws.String(`"other"`),
	}))
	return seen{
		"etag": copied.CopyObjectResult.ETag, "body": string(p.get("copy", nil)), "metadata": head.Metadata, "replaced": replaced.Metadata,
		"condition": condition,
	}
}

func (p *program) refusals() seen {
	p.put("k", "stays")
	batch := &types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("k")}}}
	return seen{
		"batch": refusal(p.client.DeleteObjects(p.ctx, &s3.DeleteObjectsInput{Bucket: p.bucket, Delete: batch})),
		"first": refusal(p.client.ListObjects(p.ctx, &s3.ListObjectsInput{Bucket: p.bucket})),
		"acl": refusal(p.client.PutObject(p.ctx, &s3.PutObjectInput{
			Bucket: p.bucket, Key: aws.String("k"), Body: bytes.NewReader(nil), ACL: types.ObjectCannedACLPublicRead,
		})),
		"stays": string(p.get("k", nil)),
	}
}

func main() {
	ctx := context.Background()
	settings := must(config.LoadDefaultConfig(ctx))
	// The address of the server, if the bucket is named in the host: these hosts are in no DNS.
	address := os.Getenv("CAIRN_VIRTUAL_HOSTED")
	if address != "" {
		settings.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(transport *http.Transport) {
			transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, address)
			}
		})
	}
	client := s3.NewFromConfig(settings, func(o *s3.Options) { o.UsePathStyle, o.RetryMaxAttempts = address == "", 1 })
	if os.Args[1] == "calls" {
		(&program{ctx: ctx, client: client}).serveCalls()
		return
	}
	p := &program{ctx: ctx, client: client, bucket: &os.Args[2]}
	if len(os.Args) > 3 {
		p.file = os.Args[3]
	}
	scenarios := map[string]func() seen{
		"objects": p.objects, "multipart": p.multipart, "versions": p.versions, "locks": p.locks, "copies": p.copies,
		"refusals": p.refusals,
	}
	must(0, json.NewEncoder(os.Stdout).Encode(scenarios[os.Args[1]]()))
}
