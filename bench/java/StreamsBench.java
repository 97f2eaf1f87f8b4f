import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;

/** The topologies of the comparison: name, bootstrap servers, application id, state folder, guarantee. */
public class StreamsBench {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[1]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[2]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, args[3]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[4]);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, args[5]);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put("auto.offset.reset", "earliest");
        settings.put("compression.type", "lz4");
        StreamsBuilder builder = new StreamsBuilder();
        switch (args[0]) {
            case "words" -> words(builder);
            case "join" -> join(builder);
            case "enrich" -> enrich(builder);
            case "enrich-table" -> enrichTable(builder);
            case "minutes" -> minutes(builder);
            case "stateless" -> stateless(builder);
            default -> throw new IllegalArgumentException(args[0]);
        }
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        CountDownLatch ended = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            System.out.println(now);
            System.out.flush();
            if (now == KafkaStreams.State.ERROR) {
                ended.countDown();
            }
        });
        streams.start();
        new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                    continue;
                }
            } catch (java.io.IOException error) {
                System.err.println(error);
            }
            ended.countDown();
        }).start();
        ended.await();
        streams.close(Duration.ofSeconds(20));
        System.exit(0);
    }

    static void words(StreamsBuilder builder) {
        builder.<String, String>stream("lines")
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.as("words"))
            .count()
            .toStream()
            .to("counts", Produced.with(Serdes.String(), Serdes.Long()));
    }

    static void minutes(StreamsBuilder builder) {
        builder.<String, String>stream("clicks")
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofMinutes(1)))
            .count()
            .toStream((windowed, count) -> windowed.key() + "@" + windowed.window().start())
            .to("minutes", Produced.with(Serdes.String(), Serdes.Long()));
    }

    static void join(StreamsBuilder builder) {
        KStream<String, String> payments = builder.stream("payments");
        builder.<String, String>stream("orders")
            .join(
                payments,
                (order, payment) -> order + "|" + payment,
                JoinWindows.ofTimeDifferenceAndGrace(Duration.ofMinutes(5), Duration.ofMinutes(1)),
                StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()))
            .to("paid");
    }

    static void enrich(StreamsBuilder builder) {
        GlobalKTable<String, String> users = builder.globalTable("users");
        builder.<String, String>stream("clicks")
            .join(users, (key, click) -> key, (click, user) -> click + "|" + user)
            .to("enriched");
    }

    static void enrichTable(StreamsBuilder builder) {
        KTable<String, String> users = builder.table("users");
        builder.<String, String>stream("clicks").join(users, (click, user) -> click + "|" + user).to("enriched");
    }

    static void stateless(StreamsBuilder builder) {
        builder.<String, String>stream("clicks")
            .filter((key, click) -> !click.startsWith("/9"))
            .map((key, click) -> KeyValue.pair(key, click.toUpperCase()))
            .to("upper");
    }
}
