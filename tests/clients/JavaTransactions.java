import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactions of the Java client; prints one line a step, "ok" last. Arguments: address, a name nobody used. */
public class JavaTransactions {
    static String bootstrap;
    static String name;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        name = args[1];
        String source = name + ".source", target = name + ".target";
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(source, 3, (short) 1), new NewTopic(target, 3, (short) 1))).all().get();
            commitAndAbort(source);
            System.out.println("committed and aborted");
            move(source, target);
            System.out.println("moved");
            KafkaProducer<String, String> older = producer(name + ".owned");
            older.beginTransaction();
            older.send(new ProducerRecord<>(target, 0, null, "older")).get();
            describe(admin, target);
            System.out.println("open");
            fence(older, target);
            System.out.println("fenced");
            terminate(admin, target);
            System.out.println("terminated");
        }
        System.out.println("ok");
        System.exit(0);
    }

    static void check(boolean condition, String what) {
        if (!condition) throw new AssertionError(what);
    }

    static KafkaProducer<String, String> producer(String id) {
        KafkaProducer<String, String> made = new KafkaProducer<>(
            Map.of("bootstrap.servers", bootstrap, "transactional.id", id, "linger.ms", 0),
            new StringSerializer(), new StringSerializer());
        made.initTransactions();
        return made;
    }

    static KafkaConsumer<String, String> consumer(String group) {
        return new KafkaConsumer<>(
            Map.of("bootstrap.servers", bootstrap, "group.id", group, "isolation.level", "read_committed",
                "enable.auto.commit", "false", "auto.offset.reset", "earliest", "max.poll.records", 7),
            new StringDeserializer(), new StringDeserializer());
    }

    static void commitAndAbort(String topic) throws Exception {
        try (KafkaProducer<String, String> producer = producer(name + ".writer")) {
            for (int turn = 0; turn < 20; turn++) {
                producer.beginTransaction();
                for (int index = 0; index < 3; index++) producer.send(new ProducerRecord<>(topic, index, null, turn + "/" + index));
                if (turn % 4 == 3) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        List<String> found = readAll(topic);
        check(found.size() == 45, "read " + found.size() + " of 45 records");
        for (String each : found) check(Integer.parseInt(each.split("/")[0]) % 4 != 3, "an aborted record: " + each);
    }

    static List<String> readAll(String topic) {
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer("reader")) {
            List<TopicPartition> places = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1), new TopicPartition(topic, 2));
            consumer.assign(places);
            consumer.seekToBeginning(places);
            Map<TopicPartition, Long> ends = consumer.endOffsets(places);
            while (places.stream().anyMatch(place -> consumer.position(place) < ends.get(place))) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) found.add(record.value());
            }
        }
        return found;
    }

    /** Every record of one topic into the other, each third transaction aborted and done again. */
    static void move(String source, String target) throws Exception {
        int moved = 0, turn = 0;
        try (KafkaProducer<String, String> producer = producer(name + ".mover"); KafkaConsumer<String, String> consumer = consumer(name)) {
            consumer.subscribe(List.of(source));
            while (moved < 45) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
                if (records.isEmpty()) continue;
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>(), before = new HashMap<>();
                producer.beginTransaction();
                for (ConsumerRecord<String, String> record : records) {
                    TopicPartition place = new TopicPartition(source, record.partition());
                    producer.send(new ProducerRecord<>(target, record.partition(), null, record.value()));
                    before.putIfAbsent(place, new OffsetAndMetadata(record.offset()));
                    offsets.put(place, new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (turn++ % 3 == 1) {
                    producer.abortTransaction();
                    for (Map.Entry<TopicPartition, OffsetAndMetadata> each : before.entrySet()) consumer.seek(each.getKey(), each.getValue().offset());
                } else {
                    producer.commitTransaction();
                    moved += records.count();
                    Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(offsets.keySet());
                    for (TopicPartition place : offsets.keySet())
                        check(committed.get(place).offset() == offsets.get(place).offset(), "committed " + committed);
                }
            }
        }
        check(moved == 45, "moved " + moved);
        List<String> found = readAll(target);
        check(found.size() == 45, "found " + found.size());
        check(found.stream().distinct().count() == 45, "some came twice");
    }

    static void describe(Admin admin, String topic) throws Exception {
        String id = name + ".owned";
        TransactionDescription found = admin.describeTransactions(List.of(id)).description(id).get();
        check(found.state() == TransactionState.ONGOING, "state " + found.state());
        check(found.topicPartitions().contains(new TopicPartition(topic, 0)), "partitions " + found.topicPartitions());
        check(admin.listTransactions(new ListTransactionsOptions().filterStates(List.of(TransactionState.ONGOING))).all().get().stream()
            .anyMatch(each -> each.transactionalId().equals(id)), "not listed");
    }

    static void fence(KafkaProducer<String, String> older, String topic) throws Exception {
        try (KafkaProducer<String, String> newer = producer(name + ".owned")) {
            newer.beginTransaction();
            newer.send(new ProducerRecord<>(topic, 0, null, "newer")).get();
            newer.commitTransaction();
        }
        try {
            older.commitTransaction();
            check(false, "the older producer was not fenced");
        } catch (ProducerFencedException | InvalidProducerEpochException expected) {
            older.close(Duration.ZERO);
        }
        List<String> found = readAll(topic);
        check(found.contains("newer") && !found.contains("older"), "found " + found);
    }

    static void terminate(Admin admin, String topic) throws Exception {
        String id = name + ".hung";
        KafkaProducer<String, String> hung = producer(id);
        hung.beginTransaction();
        hung.send(new ProducerRecord<>(topic, 1, null, "hung")).get();
        admin.fenceProducers(List.of(id)).all().get();
        check(admin.describeTransactions(List.of(id)).description(id).get().state() != TransactionState.ONGOING, "still open");
        hung.close(Duration.ZERO);
        check(!readAll(topic).contains("hung"), "read what was never committed");
    }
}
