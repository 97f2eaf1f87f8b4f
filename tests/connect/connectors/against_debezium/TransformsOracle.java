import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.transforms.Transformation;

/** Sends events through Debezium's transforms: a line of JSON for each transform, and one with its answers. */
public class TransformsOracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final JsonConverter KEYS = new JsonConverter();
    static final JsonConverter VALUES = new JsonConverter();

    public static void main(String[] arguments) throws Exception {
        KEYS.configure(Map.of("schemas.enable", "true"), true);
        VALUES.configure(Map.of("schemas.enable", "true"), false);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null;) {
            out.println(JSON.writeValueAsString(answered(JSON.readTree(line))));
        }
        out.flush();
    }

    @SuppressWarnings("unchecked")
    static ArrayNode answered(JsonNode question) throws Exception {
        Map<String, String> settings = new HashMap<>();
        question.path("settings").fields().forEachRemaining(one -> settings.put(one.getKey(), one.getValue().asText()));
        Transformation<SourceRecord> transform = (Transformation<SourceRecord>)
            Class.forName("io.debezium.transforms." + question.path("type").asText()).getDeclaredConstructor().newInstance();
        transform.configure(settings);
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode each : question.path("records")) {
            ObjectNode answer = answers.addObject();
            try {
                shown(transform.apply(record(each)), answer);
            } catch (Throwable error) {
                answer.removeAll();
                answer.put("error", String.valueOf(error));
            }
        }
        return answers;
    }

    static SourceRecord record(JsonNode given) throws Exception {
        String topic = given.path("topic").asText();
        SchemaAndValue key = KEYS.toConnectData(topic, bytes(given.path("key")));
        SchemaAndValue value = VALUES.toConnectData(topic, bytes(given.path("value")));
        SourceRecord found = new SourceRecord(Map.of("server", "s"), Map.of("lsn", 1L), topic, null, key.schema(),
            key.value(), value.schema(), value.value(), 1700000000000L);
        for (JsonNode header : given.path("headers")) {
            SchemaAndValue one = VALUES.toConnectData(topic, bytes(header.path(1)));
            found.headers().add(header.path(0).asText(), one.value(), one.schema());
        }
        return found;
    }

    static void shown(SourceRecord made, ObjectNode answer) throws Exception {
        if (made == null) {
            answer.put("dropped", true);
            return;
        }
        answer.put("topic", made.topic());
        answer.put("partition", made.kafkaPartition());
        answer.put("timestamp", made.timestamp());
        answer.set("key", tree(KEYS.fromConnectData("t", made.keySchema(), made.key())));
        answer.set("value", tree(VALUES.fromConnectData("t", made.valueSchema(), made.value())));
        ArrayNode headers = answer.putArray("headers");
        for (Header each : made.headers()) {
            headers.addArray().add(each.key()).add(tree(VALUES.fromConnectData("t", each.schema(), each.value())));
        }
    }

    static byte[] bytes(JsonNode node) throws Exception {
        return node.isNull() ? null : JSON.writeValueAsBytes(node);
    }

    static JsonNode tree(byte[] data) throws Exception {
        return data == null ? JSON.nullNode() : JSON.readTree(data);
    }
}
