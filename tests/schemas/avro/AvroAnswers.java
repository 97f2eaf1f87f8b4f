/** Answers questions about Avro schemas, one JSON object a line: the text it prints, or why a reader fails. */

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

public class AvroAnswers {
  public static void main(String[] arguments) throws Exception {
    ObjectMapper json = new ObjectMapper();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode question = json.readTree(line);
      ObjectNode answer = json.createObjectNode();
      try {
        if (question.has("reader")) {
          compare(question, answer.putArray("reasons"));
        } else {
          answer.put("canonical", printed(question));
        }
      } catch (Exception error) {
        answer.put("error", String.valueOf(error.getMessage()));
      }
      out.println(answer);
    }
  }

  private static String printed(JsonNode question) {
    Schema.Parser parser = new Schema.Parser(NameValidator.STRICT_VALIDATOR).setValidateDefaults(true);
    List<Schema> references = new ArrayList<>();
    for (JsonNode text : question.path("references")) {
      references.add(parser.parse(text.asText()));
    }
    return parser.parse(question.get("text").asText()).toString(references, false);
  }

  private static void compare(JsonNode question, ArrayNode reasons) {
    Schema reader = new Schema.Parser().parse(question.get("reader").asText());
    Schema writer = new Schema.Parser().parse(question.get("writer").asText());
    SchemaCompatibility.checkReaderWriterCompatibility(reader, writer)
        .getResult()
        .getIncompatibilities()
        .forEach(one -> reasons.addArray().add(one.getType().name()).add(one.getLocation()));
  }
}
