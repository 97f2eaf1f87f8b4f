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
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;

/** Answers questions about Apache's converters and transforms: a line of JSON for each, in the same order. */
public class ConnectOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null;) {
            JsonNode question = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode();
            try {
                answered(question, answer);
            } catch (Throwable error) {
                answer.removeAll();
                answer.put("error", String.valueOf(error));
            }
            out.println(JSON.writeValueAsString(answer));
        }
        out.flush();
    }

    static void answered(JsonNode question, ObjectNode answer) throws Exception {
        Map<String, String> settings = new HashMap<>();
        question.path("settings").fields().forEachRemaining(one -> settings.put(one.getKey(), one.getValue().asText()));
        byte[] data = question.path("data").isNull() ? null : question.path("data").asText().getBytes(StandardCharsets.UTF_8);
        switch (question.path("op").asText()) {
            case "header" -> header(data, answer);
            case "transform" -> transform(question, settings, data, answer);
            default -> {
                Converter reader = converter(question.path("reader").asText(), settings);
                Converter writer = converter(question.path("writer").asText(), settings);
                SchemaAndValue read = reader.toConnectData("t", data);
                byte[] written = writer.fromConnectData("t", read.schema(), read.value());
                answer.put("written", written == null ? null : new String(written, StandardCharsets.UTF_8));
            }
        }
    }

    static Converter converter(String name, Map<String, String> settings) throws Exception {
        Converter made = (Converter) Class.forName(name).getDeclaredConstructor().newInstance();
        made.configure(settings, false);
        return made;
    }

    static void header(byte[] data, ObjectNode answer) throws Exception {
        HeaderConverter converter = (HeaderConverter) Class.forName("org.apache.kafka.connect.storage.SimpleHeaderConverter")
            .getDeclaredConstructor().newInstance();
        SchemaAndValue read = converter.toConnectHeader("t", "h", data);
        answer.put("type", read.schema() == null ? null : String.valueOf(read.schema().type()));
        answer.put("name", read.schema() == null ? null : read.schema().name());
        byte[] written = converter.fromConnectHeader("t", "h", read.schema(), read.value());
        answer.put("written", written == null ? null : new String(written, StandardCharsets.UTF_8));
    }

    @SuppressWarnings("unchecked")
    static void transform(JsonNode question, Map<String, String> settings, byte[] data, ObjectNode answer) throws Exception {
        boolean schemas = question.path("schemas").asBoolean();
        JsonConverter keys = new JsonConverter();
        keys.configure(Map.of("schemas.enable", String.valueOf(schemas)), true);
        JsonConverter values = new JsonConverter();
        values.configure(Map.of("schemas.enable", String.valueOf(schemas), "decimal.format", "NUMERIC"), false);
        Transformation<SinkRecord> transform = (Transformation<SinkRecord>)
            Class.forName("org.apache.kafka.connect.transforms." + question.path("type").asText()).getDeclaredConstructor().newInstance();
        try {
            transform.configure(settings);
        } catch (Throwable error) {
            answer.put("config_error", String.valueOf(error));
            return;
        }
        SchemaAndValue read = values.toConnectData("t", data);
        SinkRecord record = new SinkRecord("orders-7", 3, read.schema(), read.value(), read.schema(), read.value(), 41,
            1709211909045L, TimestampType.CREATE_TIME);
        SinkRecord made = transform.apply(record);
        if (made == null) {
            answer.put("dropped", true);
            return;
        }
        answer.put("topic", made.topic());
        answer.set("key", tree(keys.fromConnectData("t", made.keySchema(), made.key())));
        answer.set("value", tree(values.fromConnectData("t", made.valueSchema(), made.value())));
        ArrayNode headers = answer.putArray("headers");
        for (Header each : made.headers()) {
            headers.addArray().add(each.key()).add(tree(values.fromConnectData("t", each.schema(), each.value())));
        }
    }

    static JsonNode tree(byte[] data) throws Exception {
        return data == null ? JSON.nullNode() : JSON.readTree(data);
    }
}
