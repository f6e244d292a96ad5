import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/**
 * The calls of the compatibility matrix with Hadoop's S3A: one line of JSON in, one out.
 *
 * <p>tests/client_matrix/clients/sdk.py describes the lines. Endpoint, keys and region come from the environment. With
 * CAIRN_RECOMMENDED the settings that docs/clients.md names are made.
 */
public final class HadoopCalls {
    private final Configuration settings = new Configuration();

    private HadoopCalls() {
        String endpoint = System.getenv("AWS_ENDPOINT_URL");
        settings.set("fs.s3a.endpoint", endpoint);
        settings.set("fs.s3a.endpoint.region", System.getenv("AWS_REGION"));
        settings.set("fs.s3a.access.key", System.getenv("AWS_ACCESS_KEY_ID"));
        settings.set("fs.s3a.secret.key", System.getenv("AWS_SECRET_ACCESS_KEY"));
        settings.set("fs.s3a.path.style.access", "true");
        settings.set("fs.s3a.connection.ssl.enabled", String.valueOf(endpoint.startsWith("https")));
        settings.set("fs.s3a.attempts.maximum", "1");
        settings.set("fs.s3a.retry.limit", "1");
        settings.set("fs.s3a.buffer.dir", System.getenv("TMPDIR"));
        settings.set("fs.s3a.multipart.size", "8M");
        if (System.getenv("CAIRN_RECOMMENDED") != null) {
            settings.set("fs.s3a.multiobjectdelete.enable", "false");
        }
    }

    private Object call(JsonNode given) throws Exception {
        String bucket = given.path("bucket").asText();
        FileSystem store = new Path("s3a://" + bucket + "/").getFileSystem(settings);
        Path path = new Path("s3a://" + bucket + "/" + given.path("key").asText());
        java.nio.file.Path file = java.nio.file.Path.of(given.path("file").asText());
        switch (given.get("call").asText()) {
            case "upload":
            case "pipe":
                try (InputStream content = new FileInputStream(file.toFile()); OutputStream stream = store.create(path, true)) {
                    content.transferTo(stream);
                }
                return null;
            case "download":
                try (InputStream content = store.open(path)) {
                    Files.copy(content, file, StandardCopyOption.REPLACE_EXISTING);
                }
                return null;
            case "part":
                try (FSDataInputStream content = store.open(path)) {
                    byte[] piece = new byte[(int) (given.get("last").asLong() - given.get("first").asLong() + 1)];
                    content.readFully(given.get("first").asLong(), piece);
                    Files.write(file, piece);
                }
                return null;
            case "list":
                List<String> names = new ArrayList<>();
                for (RemoteIterator<LocatedFileStatus> found = store.listFiles(path, true); found.hasNext(); ) {
                    names.add(found.next().getPath().getName());
                }
                return names;
            case "folders":
                List<String> folders = new ArrayList<>();
                for (FileStatus found : store.listStatus(path)) {
                    if (found.isDirectory()) {
                        folders.add(found.getPath().getName());
                    }
                }
                return folders;
            case "remove": store.delete(path, true); return null;
            case "copy": store.rename(path, new Path("s3a://" + bucket + "/" + given.get("other").asText())); return null;
            default: throw new IllegalArgumentException("no such call");
        }
    }

    public static void main(String[] arguments) throws Exception {
        HadoopCalls calls = new HadoopCalls();
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
        System.exit(0);
    }
}
