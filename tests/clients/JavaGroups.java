import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Two consumers of a group; prints one line a step, "ok" last. Arguments: address, topic, group protocol. */
public class JavaGroups {
    static final int PARTITIONS = 10;
    static final int EACH = 10;
    static String bootstrap;
    static String topic;
    static String protocol;
    static List<KafkaConsumer<String, String>> members = new ArrayList<>();
    static Set<String> read = new HashSet<>();

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        topic = args[1];
        protocol = args[2];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, PARTITIONS, (short) 1))).all().get();
            produce();
            members.add(member());
            until(() -> held(0) == PARTITIONS && read.size() == PARTITIONS * EACH, "one does not get all");
            System.out.println("one has all");
            members.add(member());
            until(() -> held(0) == PARTITIONS / 2 && held(1) == PARTITIONS / 2, "they do not share");
            System.out.println("five each");
            for (KafkaConsumer<String, String> each : members) {
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (TopicPartition place : each.assignment()) offsets.put(place, new OffsetAndMetadata(EACH - 3, "three are left"));
                each.commitSync(offsets);
            }
            for (OffsetAndMetadata found : admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata().get().values()) {
                check(found.offset() == EACH - 3 && found.metadata().equals("three are left"), "committed " + found);
            }
            System.out.println("committed");
            describe(admin);
            for (KafkaConsumer<String, String> each : members) each.close();
            members.clear();
            read.clear();
            members.add(member());
            until(() -> read.size() == PARTITIONS * 3, "the rest does not come");
            members.get(0).close();
            System.out.println("went on");
            admin.deleteConsumerGroups(List.of(topic)).all().get();
            check(admin.listGroups().all().get().stream().noneMatch(group -> group.groupId().equals(topic)), "still listed");
            System.out.println("deleted");
        }
        System.out.println("ok");
    }

    static void check(boolean condition, String what) {
        if (!condition) throw new AssertionError(what);
    }

    static int held(int member) {
        return members.get(member).assignment().size();
    }

    static void until(BooleanSupplier condition, String otherwise) {
        long deadline = System.currentTimeMillis() + 40_000;
        while (!condition.getAsBoolean()) {
            check(System.currentTimeMillis() < deadline, otherwise + ": " + read.size() + " records read");
            for (KafkaConsumer<String, String> each : members) {
                for (ConsumerRecord<String, String> record : each.poll(Duration.ofMillis(50))) read.add(record.partition() + "-" + record.offset());
            }
        }
    }

    static KafkaConsumer<String, String> member() {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", topic, "group.protocol", protocol,
            "enable.auto.commit", "false", "auto.offset.reset", "earliest"));
        if (protocol.equals("classic")) settings.putAll(Map.of("session.timeout.ms", "6000", "heartbeat.interval.ms", "200"));
        KafkaConsumer<String, String> made = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        made.subscribe(List.of(topic));
        return made;
    }

    static void describe(Admin admin) throws Exception {
        ConsumerGroupDescription found = admin.describeConsumerGroups(List.of(topic)).all().get().get(topic);
        check(found.members().size() == 2, "members " + found);
        check(found.type().toString().equalsIgnoreCase(protocol), "type " + found.type());
        check(found.members().stream().allMatch(member -> member.assignment().topicPartitions().size() == PARTITIONS / 2), "assignment " + found);
        System.out.println("described");
    }

    static void produce() {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < PARTITIONS * EACH; n++) producer.send(new ProducerRecord<>(topic, n % PARTITIONS, null, "v" + n));
        }
    }
}
