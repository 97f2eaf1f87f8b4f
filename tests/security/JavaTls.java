import java.io.FileReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Each argument names a properties file. For each: produce, consume, and print how that went. */
public class JavaTls {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Properties properties = new Properties();
            try (FileReader reader = new FileReader(file)) {
                properties.load(reader);
            }
            String outcome;
            try {
                outcome = run(properties);
            } catch (Throwable thrown) {
                Throwable cause = thrown.getCause() != null ? thrown.getCause() : thrown;
                outcome = cause.getClass().getSimpleName() + ": " + cause.getMessage();
            }
            System.out.println(file.substring(file.lastIndexOf('/') + 1) + " " + outcome);
        }
        System.exit(0);
    }

    static String run(Properties properties) throws Exception {
        String topic = properties.getProperty("topic");
        properties.put("max.block.ms", "3000");
        properties.put("delivery.timeout.ms", "4000");
        properties.put("request.timeout.ms", "3000");
        properties.put("default.api.timeout.ms", "4000");
        properties.put("linger.ms", "0");
        properties.put("auto.offset.reset", "earliest");
        properties.put("max.partition.fetch.bytes", "4000000");
        byte[] large = new byte[700_000];
        try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < 10; number++) {
                producer.send(new ProducerRecord<>(topic, 0, null, number % 5 == 0 ? large : new byte[10])).get();
            }
        }
        long bytes = 0;
        try (var consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            var partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            int found = 0;
            while (found < 10) {
                for (var record : consumer.poll(Duration.ofSeconds(4))) {
                    found++;
                    bytes += record.value().length;
                }
            }
        }
        try (var admin = Admin.create(properties)) {
            return "ok " + bytes + " " + admin.describeCluster().nodes().get().size();
        }
    }
}
