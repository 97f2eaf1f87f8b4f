import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What an ordinary Java application does to a broker; prints one line a step, "ok" last. Arguments: address, topic. */
public class JavaClient {
    static final int COUNT = 500;

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        String topic = args[1];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            topics(admin, topic);
            for (String compression : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
                produce(bootstrap, topic, compression);
            }
            consume(bootstrap, topic);
            offsets(admin, topic);
            describe(admin, topic);
            remove(admin, topic);
        }
        System.out.println("ok");
    }

    static void check(boolean condition, String what) {
        if (!condition) throw new AssertionError(what);
    }

    static void topics(Admin admin, String topic) throws Exception {
        NewTopic wanted = new NewTopic(topic, 1, (short) 1).configs(Map.of("retention.ms", "-1"));
        admin.createTopics(List.of(wanted)).all().get();
        try {
            admin.createTopics(List.of(wanted)).all().get();
            throw new AssertionError("a topic was created twice");
        } catch (ExecutionException expected) {
            check(expected.getCause() instanceof org.apache.kafka.common.errors.TopicExistsException, "wrong error " + expected);
        }
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(
            new AlterConfigOp(new ConfigEntry("segment.bytes", "2000000"), AlterConfigOp.OpType.SET)))).all().get();
        String value = admin.describeConfigs(List.of(resource)).all().get().get(resource).get("segment.bytes").value();
        check(value.equals("2000000"), "segment.bytes is " + value);
        System.out.println("topics");
    }

    static void produce(String bootstrap, String topic, String compression) throws Exception {
        Properties settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", bootstrap, "enable.idempotence", "true", "acks", "all",
            "compression.type", compression, "linger.ms", "5"));
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < COUNT; n++) {
                ProducerRecord<String, String> record = new ProducerRecord<>(topic, 1, 1000L + n, n % 7 == 0 ? null : "k" + n, n % 5 == 0 ? null : "v" + n);
                record.headers().add("compression", compression.getBytes()).add("null", null);
                sent.add(producer.send(record));
            }
            producer.flush();
        }
        long previous = -1;
        for (Future<RecordMetadata> each : sent) {
            long offset = each.get().offset();
            check(previous < 0 || offset == previous + 1, "offset " + offset + " after " + previous);
            previous = offset;
        }
        System.out.println("produced " + compression);
    }

    static void consume(String bootstrap, String topic) {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "enable.auto.commit", "false", "auto.offset.reset", "earliest");
        TopicPartition where = new TopicPartition(topic, 1);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(where));
            consumer.seekToBeginning(List.of(where));
            int next = 0;
            long deadline = System.currentTimeMillis() + 30_000;
            while (next < 5 * COUNT) {
                check(System.currentTimeMillis() < deadline, "only " + next + " records came");
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    int n = next % COUNT;
                    check(record.offset() == next, "offset " + record.offset() + " instead of " + next);
                    check(record.timestamp() == 1000L + n, "timestamp " + record.timestamp());
                    check(n % 7 == 0 ? record.key() == null : record.key().equals("k" + n), "key " + record.key());
                    check(n % 5 == 0 ? record.value() == null : record.value().equals("v" + n), "value " + record.value());
                    check(record.headers().toArray().length == 2 && record.headers().lastHeader("null").value() == null, "headers");
                    next++;
                }
            }
            check(consumer.endOffsets(List.of(where)).get(where) == 5L * COUNT, "end offset");
            check(consumer.offsetsForTimes(Map.of(where, 1400L)).get(where).offset() == 400, "offset by time");
            consumer.seek(where, 7);
            check(consumer.poll(Duration.ofSeconds(10)).iterator().next().offset() == 7, "seek");
        }
        System.out.println("consumed");
    }

    static void offsets(Admin admin, String topic) throws Exception {
        TopicPartition where = new TopicPartition(topic, 1);
        check(admin.listOffsets(Map.of(where, OffsetSpec.latest())).partitionResult(where).get().offset() == 5L * COUNT, "latest");
        check(admin.listOffsets(Map.of(where, OffsetSpec.earliest())).partitionResult(where).get().offset() == 0, "earliest");
        check(admin.listOffsets(Map.of(where, OffsetSpec.maxTimestamp())).partitionResult(where).get().timestamp() == 1000L + COUNT - 1, "max timestamp");
        check(admin.listOffsets(Map.of(where, OffsetSpec.earliestLocal())).partitionResult(where).get().offset() == 0, "earliest local");
        System.out.println("offsets");
    }

    static void describe(Admin admin, String topic) throws Exception {
        check(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == 3, "partitions");
        check(admin.describeCluster().nodes().get().size() == 1, "nodes");
        int node = admin.describeCluster().controller().get().id();
        check(admin.describeLogDirs(Set.of(node)).allDescriptions().get().get(node).size() == 1, "log dirs");
        check(admin.describeMetadataQuorum().quorumInfo().get().leaderId() == node, "quorum leader");
        TopicPartition where = new TopicPartition(topic, 1);
        check(admin.describeProducers(List.of(where)).partitionResult(where).get().activeProducers().size() == 5, "producers");
        System.out.println("described");
    }

    static void remove(Admin admin, String topic) throws Exception {
        admin.deleteTopics(List.of(topic)).all().get();
        long deadline = System.currentTimeMillis() + 30_000;
        while (admin.listTopics().names().get().contains(topic)) {
            check(System.currentTimeMillis() < deadline, "the topic is still there");
        }
        System.out.println("removed");
    }
}
