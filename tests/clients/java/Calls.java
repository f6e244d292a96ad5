import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import software.amazon.awssdk.core.checksums.RequestChecksumCalculation;
import software.amazon.awssdk.core.checksums.ResponseChecksumValidation;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.http.apache5.Apache5HttpClient;
import software.amazon.awssdk.retries.DefaultRetryStrategy;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3ClientBuilder;
import software.amazon.awssdk.services.s3.S3Configuration;
import software.amazon.awssdk.services.s3.model.*;
import software.amazon.awssdk.services.s3.presigner.S3Presigner;

/**
 * The calls of the compatibility matrix with the AWS SDK for Java: one line of JSON in, one out.
 *
 * <p>tests/client_matrix/clients/sdk.py describes the lines. Endpoint, keys, region and the trusted certificate come from the
 * environment. With CAIRN_RECOMMENDED the settings that docs/clients.md names are made.
 */
public final class Calls {
    private static final int PART_BYTES = 5 << 20;
    private static final Duration LINK = Duration.ofMinutes(5);
    private static final URI ENDPOINT = URI.create(System.getenv("AWS_ENDPOINT_URL"));
    private static final boolean RECOMMENDED = System.getenv("CAIRN_RECOMMENDED") != null;
    private static final long COPY_WHOLE_BYTES = RECOMMENDED ? 5L << 30 : 32L << 20;

    private final S3Client client = client();

    private static TrustManager[] trusted() {
        try (InputStream file = new FileInputStream(System.getenv("SSL_CERT_FILE"))) {
            Certificate authority = CertificateFactory.getInstance("X.509").generateCertificate(file);
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            store.setCertificateEntry("authority", authority);
            TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            factory.init(store);
            return factory.getTrustManagers();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static S3Configuration style() {
        S3Configuration.Builder style = S3Configuration.builder().pathStyleAccessEnabled(true);
        return RECOMMENDED ? style.chunkedEncodingEnabled(false).build() : style.build();
    }

    private static S3Client client() {
        S3ClientBuilder builder = S3Client.builder()
            .endpointOverride(ENDPOINT)
            .serviceConfiguration(style())
            .overrideConfiguration(settings -> settings.retryStrategy(DefaultRetryStrategy.doNotRetry()))
            .httpClient(Apache5HttpClient.builder().tlsTrustManagersProvider(Calls::trusted).build());
        if (RECOMMENDED) {
            builder.requestChecksumCalculation(RequestChecksumCalculation.WHEN_REQUIRED)
                .responseChecksumValidation(ResponseChecksumValidation.WHEN_REQUIRED);
        }
        return builder.build();
    }

    private Object call(JsonNode given) throws Exception {
        String bucket = given.path("bucket").asText(), key = given.path("key").asText();
        String version = given.hasNonNull("version") ? given.get("version").asText() : null;
        Path file = Path.of(given.path("file").asText());
        switch (given.get("call").asText()) {
            case "make": client.createBucket(request -> request.bucket(bucket)); return null;
            case "drop": client.deleteBucket(request -> request.bucket(bucket)); return null;
            case "buckets": return client.listBuckets().buckets().stream().map(Bucket::name).collect(Collectors.toList());
            case "upload": upload(bucket, key, file); return null;
            case "pipe": uploadParts(bucket, key, file); return null;
            case "download": read(GetObjectRequest.builder().bucket(bucket).key(key).versionId(version).build(), file); return null;
            case "part":
                String range = "bytes=" + given.get("first").asLong() + "-" + given.get("last").asLong();
                read(GetObjectRequest.builder().bucket(bucket).key(key).range(range).build(), file);
                return null;
            case "list":
                return client.listObjectsV2Paginator(request -> request.bucket(bucket)).contents().stream().map(S3Object::key).collect(Collectors.toList());
            case "folders":
                return client.listObjectsV2(request -> request.bucket(bucket).delimiter("/")).commonPrefixes().stream()
                    .map(CommonPrefix::prefix).collect(Collectors.toList());
            case "link_to_get":
                try (S3Presigner presigner = S3Presigner.builder().endpointOverride(ENDPOINT).serviceConfiguration(style()).build()) {
                    return presigner.presignGetObject(link -> link.signatureDuration(LINK).getObjectRequest(request -> request.bucket(bucket).key(key)))
                        .url().toString();
                }
            case "link_to_put":
                try (S3Presigner presigner = S3Presigner.builder().endpointOverride(ENDPOINT).serviceConfiguration(style()).build()) {
                    return presigner.presignPutObject(link -> link.signatureDuration(LINK).putObjectRequest(request -> request.bucket(bucket).key(key)))
                        .url().toString();
                }
            case "remove": client.deleteObject(request -> request.bucket(bucket).key(key).versionId(version)); return null;
            case "remove_many": removeMany(bucket, given.get("keys")); return null;
            case "copy": copy(bucket, key, given.get("other").asText()); return null;
            default: return versionsLocksTags(given, bucket, key);
        }
    }

    private Object versionsLocksTags(JsonNode given, String bucket, String key) {
        Tagging tags = Tagging.builder().tagSet(Tag.builder().key(given.path("name").asText()).value(given.path("value").asText()).build()).build();
        switch (given.get("call").asText()) {
            case "version_on":
                client.putBucketVersioning(request -> request.bucket(bucket).versioningConfiguration(state -> state.status(BucketVersioningStatus.ENABLED)));
                return null;
            case "versions":
                return client.listObjectVersions(request -> request.bucket(bucket)).versions().stream().map(ObjectVersion::versionId).collect(Collectors.toList());
            case "retain":
                Instant until = Instant.now().plusSeconds(given.get("seconds").asLong());
                client.putObjectRetention(request -> request.bucket(bucket).key(key)
                    .retention(retention -> retention.mode(ObjectLockRetentionMode.GOVERNANCE).retainUntilDate(until)));
                return null;
            case "retention": return client.getObjectRetention(request -> request.bucket(bucket).key(key)).retention().modeAsString();
            case "hold":
                client.putObjectLegalHold(request -> request.bucket(bucket).key(key).legalHold(hold -> hold.status(given.get("state").asText())));
                return null;
            case "tag": client.putObjectTagging(request -> request.bucket(bucket).key(key).tagging(tags)); return null;
            case "tags": return named(client.getObjectTagging(request -> request.bucket(bucket).key(key)).tagSet());
            case "tag_bucket": client.putBucketTagging(request -> request.bucket(bucket).tagging(tags)); return null;
            case "tags_of_bucket": return named(client.getBucketTagging(request -> request.bucket(bucket)).tagSet());
            default: throw new IllegalArgumentException("no such call");
        }
    }

    private static Map<String, String> named(List<Tag> tags) {
        Map<String, String> found = new TreeMap<>();
        tags.forEach(tag -> found.put(tag.key(), tag.value()));
        return found;
    }

    private void read(GetObjectRequest request, Path file) throws Exception {
        try (InputStream content = client.getObject(request)) {
            Files.copy(content, file, StandardCopyOption.REPLACE_EXISTING);
        }
    }

    private void upload(String bucket, String key, Path file) throws Exception {
        if (Files.size(file) > PART_BYTES) {
            uploadParts(bucket, key, file);
        } else {
            client.putObject(request -> request.bucket(bucket).key(key), RequestBody.fromFile(file));
        }
    }

    private void uploadParts(String bucket, String key, Path file) throws Exception {
        String id = client.createMultipartUpload(request -> request.bucket(bucket).key(key)).uploadId();
        List<CompletedPart> parts = new ArrayList<>();
        try (InputStream content = Files.newInputStream(file)) {
            for (byte[] piece = content.readNBytes(PART_BYTES); piece.length > 0; piece = content.readNBytes(PART_BYTES)) {
                int number = parts.size() + 1;
                UploadPartResponse part = client.uploadPart(
                    request -> request.bucket(bucket).key(key).uploadId(id).partNumber(number), RequestBody.fromBytes(piece));
                parts.add(CompletedPart.builder().partNumber(number).eTag(part.eTag()).checksumCRC32(part.checksumCRC32()).build());
            }
        }
        complete(bucket, key, id, parts);
    }

    private void complete(String bucket, String key, String id, List<CompletedPart> parts) {
        client.completeMultipartUpload(request -> request.bucket(bucket).key(key).uploadId(id).multipartUpload(upload -> upload.parts(parts)));
    }

    private void removeMany(String bucket, JsonNode keys) {
        List<ObjectIdentifier> objects = new ArrayList<>();
        keys.forEach(key -> objects.add(ObjectIdentifier.builder().key(key.asText()).build()));
        List<S3Error> errors = client.deleteObjects(request -> request.bucket(bucket).delete(delete -> delete.objects(objects))).errors();
        if (!errors.isEmpty()) {
            throw new IllegalStateException(errors.get(0).code() + ": " + errors.get(0).message());
        }
    }

    /** Copies an object; a large one in pieces, as an application does above 5 GiB. */
    private void copy(String bucket, String key, String other) {
        long size = client.headObject(request -> request.bucket(bucket).key(key)).contentLength();
        if (size <= COPY_WHOLE_BYTES) {
            client.copyObject(request -> request.sourceBucket(bucket).sourceKey(key).destinationBucket(bucket).destinationKey(other));
            return;
        }
        String id = client.createMultipartUpload(request -> request.bucket(bucket).key(other)).uploadId();
        List<CompletedPart> parts = new ArrayList<>();
        for (long first = 0; first < size; first += COPY_WHOLE_BYTES) {
            int number = parts.size() + 1;
            String range = "bytes=" + first + "-" + (Math.min(first + COPY_WHOLE_BYTES, size) - 1);
            CopyPartResult part = client.uploadPartCopy(request -> request.sourceBucket(bucket).sourceKey(key)
                .destinationBucket(bucket).destinationKey(other).uploadId(id).partNumber(number).copySourceRange(range)).copyPartResult();
            parts.add(CompletedPart.builder().partNumber(number).eTag(part.eTag()).build());
        }
        complete(bucket, other, id, parts);
    }

    public static void main(String[] arguments) throws Exception {
        Calls calls = new Calls();
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, Object> answer;
            try {
                answer = Collections.singletonMap("result", calls.call(json.readTree(line)));
            } catch (Exception error) {
                answer = Map.of("error", error.getClass().getSimpleName() + ": " + error.getMessage());
            }
            System.out.println(json.writeValueAsString(answer));
        }
    }
}
