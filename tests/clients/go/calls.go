package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

const copyWholeBytes = 32 << 20

// arguments are those of one call of the compatibility matrix; tests/client_matrix/clients/sdk.py describes them.
type arguments struct {
	Call, Bucket, Key, File, Other, Version, State, Name, Value string
	First, Last, Seconds                                        int64
	Keys                                                        []string
}

// version is the version that a call names, or nil.
func (a arguments) version() *string {
	if a.Version == "" {
		return nil
	}
	return &a.Version
}

// serveCalls makes one call for each line of the input.
func (p *program) serveCalls() {
	lines, answers := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var given arguments
		must(0, json.Unmarshal(line, &given))
		result, err := p.makeCall(given)
		if err != nil {
			must(0, answers.Encode(seen{"error": err.Error()}))
		} else {
			must(0, answers.Encode(seen{"result": result}))
		}
	}
}

// onlyError drops the result of a call whose success is all that counts.
func onlyError[T any](_ T, err error) (any, error) {
	return nil, err
}

func (p *program) makeCall(given arguments) (any, error) {
	bucket, key := &given.Bucket, &given.Key
	switch given.Call {
	case "make":
		return onlyError(p.client.CreateBucket(p.ctx, &s3.CreateBucketInput{Bucket: bucket}))
	case "buckets":
		return p.bucketNames()
	case "drop":
		return onlyError(p.client.DeleteBucket(p.ctx, &s3.DeleteBucketInput{Bucket: bucket}))
	case "upload":
		return p.upload(given)
	case "download", "part":
		return p.download(given)
	case "pipe":
		return p.uploadStream(given)
	case "list", "folders":
		return p.list(given)
	case "link_to_get", "link_to_put":
		return p.link(given)
	case "remove":
		return onlyError(p.client.DeleteObject(p.ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: key, VersionId: given.version()}))
	case "remove_many":
		return p.removeMany(given)
	case "copy":
		return p.copyObject(given)
	default:
		return p.makeOtherCall(given)
	}
}

// makeOtherCall makes the calls about versions, locks and tags.
func (p *program) makeOtherCall(given arguments) (any, error) {
	bucket, key := &given.Bucket, &given.Key
	tags := []types.Tag{{Key: &given.Name, Value: &given.Value}}
	switch given.Call {
	case "version_on":
		enabled := &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}
		return onlyError(p.client.PutBucketVersioning(p.ctx, &s3.PutBucketVersioningInput{Bucket: bucket, VersioningConfiguration: enabled}))
	case "versions":
		output, err := p.client.ListObjectVersions(p.ctx, &s3.ListObjectVersionsInput{Bucket: bucket})
		if err != nil {
			return nil, err
		}
		ids := []string{}
		for _, version := range output.Versions {
			ids = append(ids, *version.VersionId)
		}
		return ids, nil
	case "retain":
		until := time.Now().Add(time.Duration(given.Seconds) * time.Second)
		retention := &types.ObjectLockRetention{Mode: types.ObjectLockRetentionModeGovernance, RetainUntilDate: &until}
		return onlyError(p.client.PutObjectRetention(p.ctx, &s3.PutObjectRetentionInput{Bucket: bucket, Key: key, Retention: retention}))
	case "retention":
		output, err := p.client.GetObjectRetention(p.ctx, &s3.GetObjectRetentionInput{Bucket: bucket, Key: key})
		if err != nil {
			return nil, err
		}
		return output.Retention.Mode, nil
	case "hold":
		hold := &types.ObjectLockLegalHold{Status: types.ObjectLockLegalHoldStatus(given.State)}
		return onlyError(p.client.PutObjectLegalHold(p.ctx, &s3.PutObjectLegalHoldInput{Bucket: bucket, Key: key, LegalHold: hold}))
	case "tag":
		return onlyError(p.client.PutObjectTagging(p.ctx, &s3.PutObjectTaggingInput{Bucket: bucket, Key: key, Tagging: &types.Tagging{TagSet: tags}}))
	case "tags":
		output, err := p.client.GetObjectTagging(p.ctx, &s3.GetObjectTaggingInput{Bucket: bucket, Key: key})
		if err != nil {
			return nil, err
		}
		return named(output.TagSet), nil
	case "tag_bucket":
		return onlyError(p.client.PutBucketTagging(p.ctx, &s3.PutBucketTaggingInput{Bucket: bucket, Tagging: &types.Tagging{TagSet: tags}}))
	case "tags_of_bucket":
		output, err := p.client.GetBucketTagging(p.ctx, &s3.GetBucketTaggingInput{Bucket: bucket})
		if err != nil {
			return nil, err
		}
		return named(output.TagSet), nil
	}
	return nil, fmt.Errorf("no call %q", given.Call)
}

func named(tags []types.Tag) map[string]string {
	found := map[string]string{}
	for _, tag := range tags {
		found[*tag.Key] = *tag.Value
	}
	return found
}

func (p *program) bucketNames() (any, error) {
	output, err := p.client.ListBuckets(p.ctx, &s3.ListBucketsInput{})
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, bucket := range output.Buckets {
		names = append(names, *bucket.Name)
	}
	return names, nil
}

// uploader is the manager's; its checksum setting is its own, and the recommendation sets both.
func (p *program) uploader() *manager.Uploader {
	return manager.NewUploader(p.client, func(u *manager.Uploader) {
		u.PartSize = partBytes
		if os.Getenv("CAIRN_RECOMMENDED") != "" {
			u.RequestChecksumCalculation = p.client.Options().RequestChecksumCalculation
		}
	})
}

func (p *program) upload(given arguments) (any, error) {
	content, err := os.ReadFile(given.File)
	if err != nil {
		return nil, err
	}
	if len(content) > partBytes {
		return onlyError(p.uploader().Upload(p.ctx, &s3.PutObjectInput{Bucket: &given.Bucket, Key: &given.Key, Body: bytes.NewReader(content)}))
	}
	return onlyError(p.client.PutObject(p.ctx, &s3.PutObjectInput{Bucket: &given.Bucket, Key: &given.Key, Body: bytes.NewReader(content)}))
}

func (p *program) uploadStream(given arguments) (any, error) {
	file, err := os.Open(given.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// Without its other methods the file is a stream of unknown length.
	stream := struct{ io.Reader }{file}
	return onlyError(p.uploader().Upload(p.ctx, &s3.PutObjectInput{Bucket: &given.Bucket, Key: &given.Key, Body: stream}))
}

func (p *program) download(given arguments) (any, error) {
	input := &s3.GetObjectInput{Bucket: &given.Bucket, Key: &given.Key, VersionId: given.version()}
	if given.Call == "part" {
		input.Range = aws.String(fmt.Sprintf("bytes=%d-%d", given.First, given.Last))
	}
	output, err := p.client.GetObject(p.ctx, input)
	if err != nil {
		return nil, err
	}
	defer output.Body.Close()
	content, err := io.ReadAll(output.Body)
	if err != nil {
		return nil, err
	}
	return nil, os.WriteFile(given.File, content, 0o600)
}

func (p *program) list(given arguments) (any, error) {
	input := &s3.ListObjectsV2Input{Bucket: &given.Bucket}
	if given.Call == "folders" {
		input.Delimiter = aws.String("/")
	}
	names, pages := []string{}, s3.NewListObjectsV2Paginator(p.client, input)
	for pages.HasMorePages() {
		page, err := pages.NextPage(p.ctx)
		if err != nil {
			return nil, err
		}
		for _, folder := range page.CommonPrefixes {
			names = append(names, *folder.Prefix)
		}
		for _, item := range page.Contents {
			if given.Call == "list" {
				names = append(names, *item.Key)
			}
		}
	}
	return names, nil
}

func (p *program) link(given arguments) (any, error) {
	presigner := s3.NewPresignClient(p.client)
	if given.Call == "link_to_put" {
		signed, err := presigner.PresignPutObject(p.ctx, &s3.PutObjectInput{Bucket: &given.Bucket, Key: &given.Key})
		if err != nil {
			return nil, err
		}
		return signed.URL, nil
	}
	signed, err := presigner.PresignGetObject(p.ctx, &s3.GetObjectInput{Bucket: &given.Bucket, Key: &given.Key})
	if err != nil {
		return nil, err
	}
	return signed.URL, nil
}

func (p *program) removeMany(given arguments) (any, error) {
	objects := []types.ObjectIdentifier{}
	for number := range given.Keys {
		objects = append(objects, types.ObjectIdentifier{Key: &given.Keys[number]})
	}
	output, err := p.client.DeleteObjects(p.ctx, &s3.DeleteObjectsInput{Bucket: &given.Bucket, Delete: &types.Delete{Objects: objects}})
	if err == nil && len(output.Errors) > 0 {
		return nil, fmt.Errorf("%s: %s", *output.Errors[0].Code, *output.Errors[0].Message)
	}
	return nil, err
}

// copyObject copies large objects in pieces, as an application does above 5 GiB.
func (p *program) copyObject(given arguments) (any, error) {
	source := aws.String(given.Bucket + "/" + strings.ReplaceAll(url.PathEscape(given.Key), "+", "%2B"))
	head, err := p.client.HeadObject(p.ctx, &s3.HeadObjectInput{Bucket: &given.Bucket, Key: &given.Key})
	if err != nil {
		return nil, err
	}
	// With the recommended settings it copies whole.
	if *head.ContentLength <= copyWholeBytes || os.Getenv("CAIRN_RECOMMENDED") != "" {
		return onlyError(p.client.CopyObject(p.ctx, &s3.CopyObjectInput{Bucket: &given.Bucket, Key: &given.Other, CopySource: source}))
	}
	created, err := p.client.CreateMultipartUpload(p.ctx, &s3.CreateMultipartUploadInput{Bucket: &given.Bucket, Key: &given.Other})
	if err != nil {
		return nil, err
	}
	parts := []types.CompletedPart{}
	for first := int64(0); first < *head.ContentLength; first += copyWholeBytes {
		last := min(first+copyWholeBytes, *head.ContentLength) - 1
		number := aws.Int32(int32(len(parts) + 1))
		part, err := p.client.UploadPartCopy(p.ctx, &s3.UploadPartCopyInput{
			Bucket: &given.Bucket, Key: &given.Other, UploadId: created.UploadId, PartNumber: number, CopySource: source,
			CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", first, last)),
		})
		if err != nil {
			return nil, err
		}
		parts = append(parts, types.CompletedPart{PartNumber: number, ETag: part.CopyPartResult.ETag})
	}
	return onlyError(p.client.CompleteMultipartUpload(p.ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &given.Bucket, Key: &given.Other, UploadId: created.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}))
}
