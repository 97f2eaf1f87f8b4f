import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Moves records from one topic to another, exactly once, until it is killed.
 * Arguments: address, source, target, transactional id. Prints a line for every transaction it commits.
 */
public class JavaMover {
    public static void main(String[] args) {
        while (true) {
            try {
                work(args[0], args[1], args[2], args[3]);
            } catch (KafkaException error) {
                System.err.println("again after " + error);
            }
        }
    }

    /** As a program does it that starts anew after every error it cannot handle. */
    static void work(String bootstrap, String source, String target, String name) {
        Map<String, Object> reading = Map.of("bootstrap.servers", bootstrap, "group.id", name,
            "isolation.level", "read_committed", "enable.auto.commit", "false", "auto.offset.reset", "earliest",
            "max.poll.records", 7, "session.timeout.ms", 1500, "heartbeat.interval.ms", 200, "reconnect.backoff.max.ms", 100);
        Map<String, Object> writing = Map.of("bootstrap.servers", bootstrap, "transactional.id", name,
            "linger.ms", 0, "reconnect.backoff.max.ms", 100);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
             KafkaProducer<String, String> producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) continue;
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<String, String> record : records) {
                    producer.send(new ProducerRecord<>(target, record.partition(), null, record.value()));
                    offsets.put(new TopicPartition(source, record.partition()), new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
                System.out.println(records.count());
                System.out.flush();
            }
        }
    }
}
