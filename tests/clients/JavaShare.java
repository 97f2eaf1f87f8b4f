import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Share consumers that do what they are told, a line for each command.
 * Arguments: address, group, topic. Commands: open NAME MODE RECORDS, poll NAME MS, ack NAME PARTITION OFFSET TYPE,
 * commit NAME, close NAME.
 */
public class JavaShare {
    static Map<String, KafkaShareConsumer<String, String>> members = new HashMap<>();
    static Map<String, ConsumerRecord<String, String>> records = new HashMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            try {
                System.out.println(answer(args, line.split(" ")));
            } catch (Exception error) {
                System.out.println("failed " + error.getClass().getSimpleName() + " " + error.getMessage());
            }
            System.out.flush();
        }
    }

    static String answer(String[] args, String[] words) {
        String name = words[1];
        KafkaShareConsumer<String, String> member = members.get(name);
        switch (words[0]) {
            case "open":
                Properties settings = new Properties();
                settings.put("bootstrap.servers", args[0]);
                settings.put("group.id", args[1]);
                settings.put("client.id", name);
                settings.put("share.acknowledgement.mode", words[2]);
                settings.put("max.poll.records", words[3]);
                settings.put("metadata.max.age.ms", "1000");
                member = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
                member.subscribe(List.of(args[2]));
                members.put(name, member);
                return "done";
            case "poll":
                StringBuilder found = new StringBuilder("done");
                for (ConsumerRecord<String, String> each : member.poll(Duration.ofMillis(Long.parseLong(words[2])))) {
                    records.put(name + " " + each.partition() + " " + each.offset(), each);
                    found.append(" ").append(each.partition()).append(":").append(each.offset());
                    found.append(":").append(each.value()).append(":").append(each.deliveryCount().orElse((short) 0));
                }
                return found.toString();
            case "ack":
                member.acknowledge(records.get(name + " " + words[2] + " " + words[3]), AcknowledgeType.valueOf(words[4]));
                return "done";
            case "commit":
                StringBuilder errors = new StringBuilder("done");
                for (Map.Entry<TopicIdPartition, Optional<KafkaException>> each : member.commitSync().entrySet()) {
                    each.getValue().ifPresent(error -> errors.append(" ").append(error.getClass().getSimpleName()));
                }
                return errors.toString();
            case "close":
                members.remove(name).close(Duration.ofSeconds(10));
                return "done";
            default:
                return "failed unknown command";
        }
    }
}
