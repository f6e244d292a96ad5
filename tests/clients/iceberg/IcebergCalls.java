import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.avro.Avro;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.types.Types;

/**
 * A table of Iceberg whose files are written by S3FileIO, for the compatibility matrix: one line of JSON in, one out.
 *
 * <p>A line is {"call": "write"}, "read" or "remove". Endpoint, keys, region and bucket come from the environment.
 */
public final class IcebergCalls {
    private static final int ROWS = 100_000;
    // The smallest that S3 allows. A file of the table is larger than one part.
    private static final String PART_BYTES = String.valueOf(5 << 20);
    private static final TableIdentifier NAME = TableIdentifier.of("n", "t");
    private static final Schema SCHEMA =
            new Schema(
                    Types.NestedField.required(1, "i", Types.LongType.get()),
                    Types.NestedField.required(2, "m", Types.StringType.get()));
    private final JdbcCatalog catalog = new JdbcCatalog();

    private IcebergCalls() {
        catalog.initialize(
                "matrix",
                Map.ofEntries(
                        Map.entry("uri", "jdbc:sqlite:" + System.getenv("TMPDIR") + "/catalog.db"),
                        Map.entry("warehouse", "s3://" + System.getenv("BUCKET") + "/warehouse"),
                        Map.entry("io-impl", "org.apache.iceberg.aws.s3.S3FileIO"),
                        Map.entry("s3.endpoint", System.getenv("AWS_ENDPOINT_URL")),
                        Map.entry("s3.path-style-access", "true"),
                        Map.entry("s3.access-key-id", System.getenv("AWS_ACCESS_KEY_ID")),
                        Map.entry("s3.secret-access-key", System.getenv("AWS_SECRET_ACCESS_KEY")),
                        Map.entry("s3.multipart.part-size-bytes", PART_BYTES),
                        Map.entry("s3.retry.num-retries", "0"),
                        Map.entry("client.region", System.getenv("AWS_REGION"))));
    }

    private Object call(String name) throws IOException {
        switch (name) {
            case "write":
                catalog.createNamespace(Namespace.of("n"));
                Table made = catalog.createTable(NAME, SCHEMA);
                append(made, 0);
                append(made, ROWS);
                return null;
            case "read":
                Table table = catalog.loadTable(NAME);
                expect(sum(table, table.currentSnapshot()), (2L * ROWS - 1) * ROWS, "sum of the table");
                expect(sum(table, table.snapshots().iterator().next()), (ROWS - 1L) * ROWS / 2, "sum of the first snapshot");
                return null;
            case "remove":
                Table old = catalog.loadTable(NAME);
                old.newDelete().deleteFromRowFilter(Expressions.alwaysTrue()).commit();
                old.expireSnapshots().expireOlderThan(System.currentTimeMillis()).commit();
                catalog.dropTable(NAME, true);
                return null;
            default:
                throw new IllegalArgumentException(name);
        }
    }

    private static void append(Table table, long first) throws IOException {
        Random random = new Random(first);
        String place = table.locationProvider().newDataLocation(UUID.randomUUID() + ".avro");
        DataWriter<Record> writer =
                Avro.writeData(table.io().newOutputFile(place))
                        .schema(SCHEMA)
                        .withSpec(PartitionSpec.unpartitioned())
                        .createWriterFunc(org.apache.iceberg.data.avro.DataWriter::create)
                        .build();
        try (writer) {
            for (long i = first; i < first + ROWS; i++) {
                Record row = GenericRecord.create(SCHEMA);
                row.setField("i", i);
                row.setField("m", text(random));
                writer.write(row);
            }
        }
        table.newAppend().appendFile(writer.toDataFile()).commit();
    }

    private static String text(Random random) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 8; i++) {
            text.append(Long.toHexString(random.nextLong()));
        }
        return text.toString();
    }

    private static long sum(Table table, Snapshot snapshot) throws IOException {
        long sum = 0;
        try (CloseableIterable<Record> rows = IcebergGenerics.read(table).useSnapshot(snapshot.snapshotId()).build()) {
            for (Record row : rows) {
                sum += (long) row.getField("i");
            }
        }
        return sum;
    }

    private static void expect(long found, long expected, String what) {
        if (found != expected) {
            throw new IllegalStateException(what + ": " + found + " instead of " + expected);
        }
    }

    public static void main(String[] arguments) throws IOException {
        IcebergCalls calls = new IcebergCalls();
        ObjectMapper json = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode given = json.readTree(line);
            Map<String, Object> answer;
            try {
                Object result = calls.call(given.get("call").asText());
                answer = Collections.singletonMap("result", result);
            } catch (Exception error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                answer = Collections.singletonMap("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
            System.out.println(json.writeValueAsString(answer));
        }
    }
}
