import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.kafka.connect.sink.SinkTaskContext;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.source.SourceTaskContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/**
 * One task of a connector in Java, without a worker. Arguments: source or sink, the class of the task, a file
 * with its settings. A source prints a line for each record until its input ends: topic, key and value as JSON
 * with schemas. A sink writes the records of its input, lines of topic, partition, offset, key and value in
 * base64 with tabs between, all in one batch.
 */
public class TestConnector {
    static final JsonConverter JSON = new JsonConverter();

    public static void main(String[] args) throws Exception {
        JSON.configure(Map.of("schemas.enable", "true"), false);
        Properties file = new Properties();
        try (FileReader reader = new FileReader(args[2])) {
            file.load(reader);
        }
        Map<String, String> config = new HashMap<>();
        file.forEach((name, value) -> config.put((String) name, (String) value));
        Object task = Class.forName(args[1]).getDeclaredConstructor().newInstance();
        if (args[0].equals("sink")) {
            write((SinkTask) task, config);
        } else {
            read((SourceTask) task, config);
        }
        System.exit(0);
    }

    static void read(SourceTask task, Map<String, String> config) throws Exception {
        OffsetStorageReader offsets = proxy(OffsetStorageReader.class, Map.of("offsets", new HashMap<>()));
        task.initialize(proxy(SourceTaskContext.class, Map.of("offsetStorageReader", offsets, "configs", config)));
        task.start(config);
        System.out.println("started");
        while (System.in.available() == 0) {
            List<SourceRecord> records = task.poll();
            for (SourceRecord each : records == null ? List.<SourceRecord>of() : records) {
                byte[] key = JSON.fromConnectData(each.topic(), each.keySchema(), each.key());
                byte[] value = JSON.fromConnectData(each.topic(), each.valueSchema(), each.value());
                System.out.println(each.topic() + "\t" + text(key) + "\t" + text(value));
            }
            System.out.flush();
        }
        task.stop();
    }

    static String text(byte[] json) {
        return json == null ? "null" : new String(json, StandardCharsets.UTF_8);
    }

    static void write(SinkTask task, Map<String, String> config) throws Exception {
        task.initialize(proxy(SinkTaskContext.class, Map.of("configs", config)));
        task.start(config);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        List<SinkRecord> records = new ArrayList<>();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t", -1);
            SchemaAndValue key = parsed(parts[0], parts[3]);
            SchemaAndValue value = parsed(parts[0], parts[4]);
            records.add(new SinkRecord(parts[0], Integer.parseInt(parts[1]), key.schema(), key.value(),
                value.schema(), value.value(), Long.parseLong(parts[2]), 1700000000000L, TimestampType.CREATE_TIME));
        }
        task.put(records);
        task.stop();
        System.out.println("written");
    }

    static SchemaAndValue parsed(String topic, String base64) {
        return JSON.toConnectData(topic, base64.isEmpty() ? null : Base64.getDecoder().decode(base64));
    }

    @SuppressWarnings("unchecked")
    static <T> T proxy(Class<T> type, Map<String, Object> answers) {
        return (T) Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
            (self, method, arguments) -> answers.get(method.getName()));
    }
}
