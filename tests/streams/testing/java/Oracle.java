import java.io.*;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.*;
import org.apache.kafka.streams.test.TestRecord;

/** Runs named topologies over records of a file, and prints every result: the reference of the Python DSL. */
public class Oracle {
    static final String NULL = "\\N";
    static Duration ms(long n) { return Duration.ofMillis(n); }
    static Consumed<String, String> c() { return Consumed.with(Serdes.String(), Serdes.String()); }
    static KStream<String, String> s(StreamsBuilder b, String t) { return b.stream(t, c()); }
    static KTable<String, String> t(StreamsBuilder b, String t) { return b.table(t, c()); }
    static KGroupedStream<String, String> g(StreamsBuilder b) { return s(b, "one").groupByKey(); }
    static String cat(String a, String b) { return a + b; }
    static String pair(String a, String b) { return a + "|" + b; }
    static <V> void out(KStream<String, V> k, Serde<V> v) { k.to("out", Produced.with(Serdes.String(), v)); }
    static void out(KTable<String, String> k) { out(k.toStream(), Serdes.String()); }
    static <V> void win(KTable<Windowed<String>, V> k) {
        k.toStream((w, v) -> w.key() + "@" + w.window().start() + "/" + w.window().end())
            .mapValues(v -> v == null ? null : v.toString()).to("out", Produced.with(Serdes.String(), Serdes.String()));
    }
    static Materialized<String, String, WindowStore<org.apache.kafka.common.utils.Bytes, byte[]>> m() {
        return Materialized.with(Serdes.String(), Serdes.String());
    }
    static Materialized<String, String, SessionStore<org.apache.kafka.common.utils.Bytes, byte[]>> sm() {
        return Materialized.with(Serdes.String(), Serdes.String());
    }
    static Materialized<String, String, KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>> km() {
        return Materialized.with(Serdes.String(), Serdes.String());
    }

    static class Summing implements Processor<String, String, String, String> {
        ProcessorContext<String, String> context;
        KeyValueStore<String, String> store;
        public void init(ProcessorContext<String, String> given) {
            context = given;
            store = given.getStateStore("seen");
            given.schedule(ms(20), PunctuationType.STREAM_TIME, now -> {
                try (KeyValueIterator<String, String> all = store.all()) {
                    while (all.hasNext()) {
                        KeyValue<String, String> each = all.next();
                        context.forward(new Record<>(each.key, "t" + each.value, now));
                    }
                }
            });
            given.schedule(ms(50), PunctuationType.WALL_CLOCK_TIME, now -> context.forward(new Record<>("wall", "w", now)));
        }
        public void process(Record<String, String> r) {
            if (r.key() == null) return;
            String old = store.get(r.key());
            if (r.value() == null) store.delete(r.key());
            else store.put(r.key(), old == null ? r.value() : old + r.value());
            context.forward(r.withValue("p" + r.value()));
        }
    }

    static void build(String name, StreamsBuilder b) {
        ValueJoiner<String, String, String> join = Oracle::pair;
        JoinWindows w = JoinWindows.ofTimeDifferenceAndGrace(ms(10), ms(5)).before(ms(7));
        StreamJoined<String, String, String> sj = StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String());
        TimeWindows tumbling = TimeWindows.ofSizeAndGrace(ms(10), ms(5));
        TimeWindows hopping = TimeWindows.ofSizeAndGrace(ms(15), ms(4)).advanceBy(ms(5));
        SlidingWindows sliding = SlidingWindows.ofTimeDifferenceAndGrace(ms(10), ms(8));
        SessionWindows sessions = SessionWindows.ofInactivityGapAndGrace(ms(6), ms(5));
        Aggregator<String, String, String> add = (k, v, a) -> a + v;
        switch (name) {
            case "stateless" -> out(s(b, "one").filter((k, v) -> v != null).mapValues(v -> v + "!")
                .flatMapValues(v -> List.of(v, v + "?")).selectKey((k, v) -> v.substring(0, 1))
                .map((k, v) -> KeyValue.pair(k + k, v)).flatMap((k, v) -> List.of(KeyValue.pair(k, v), KeyValue.pair("x", v)))
                .filterNot((k, v) -> v.startsWith("b")).peek((k, v) -> { }), Serdes.String());
            case "split" -> {
                Map<String, KStream<String, String>> parts = s(b, "one").filter((k, v) -> v != null).split(Named.as("p-"))
                    .branch((k, v) -> v.startsWith("a"), Branched.as("a")).branch((k, v) -> v.startsWith("b"), Branched.as("b"))
                    .defaultBranch(Branched.as("rest"));
                out(parts.get("p-a").mapValues(v -> "A" + v).merge(parts.get("p-rest")), Serdes.String());
            }
            case "count" -> out(g(b).count().toStream().mapValues(v -> v == null ? null : v.toString()), Serdes.String());
            case "reduce" -> out(g(b).reduce(Oracle::cat, km()));
            case "aggregate" -> out(g(b).aggregate(() -> "", (k, v, a) -> v.startsWith("c") ? null : a + v, km()));
            case "group_by" -> out(s(b, "one").groupBy((k, v) -> v == null ? null : v.substring(0, 1), Grouped.with(Serdes.String(), Serdes.String()))
                .aggregate(() -> "", add, km()));
            case "tumbling" -> win(g(b).windowedBy(tumbling).aggregate(() -> "", add, m()));
            case "tumbling_count" -> win(g(b).windowedBy(tumbling).count());
            case "hopping" -> win(g(b).windowedBy(hopping).aggregate(() -> "", add, m()));
            case "hopping_reduce" -> win(s(b, "one").filter((k, v) -> v != null).groupByKey().windowedBy(hopping).reduce(Oracle::cat, m()));
            default -> more(name, b, join, w, sj, tumbling, hopping, sliding, sessions, add);
        }
    }

    /** Windows without the wait for the close: what deprecated constructors made, and ksqlDB still has. */
    static JoinWindows eager(JoinWindows windows) {
        try {
            java.lang.reflect.Field field = JoinWindows.class.getDeclaredField("enableSpuriousResultFix");
            field.setAccessible(true);
            field.set(windows, false);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
        return windows;
    }

    static void more(String name, StreamsBuilder b, ValueJoiner<String, String, String> join, JoinWindows w, StreamJoined<String, String, String> sj,
            TimeWindows tumbling, TimeWindows hopping, SlidingWindows sliding, SessionWindows sessions, Aggregator<String, String, String> add) {
        Merger<String, String> merge = (k, x, y) -> x + y;
        switch (name) {
            case "sliding" -> win(g(b).windowedBy(sliding).aggregate(() -> "", add, m()));
            case "sliding_count" -> win(g(b).windowedBy(sliding).count());
            case "session" -> win(g(b).windowedBy(sessions).aggregate(() -> "", add, merge, sm()));
            case "session_count" -> win(g(b).windowedBy(sessions).count());
            case "tumbling_closed" -> win(g(b).windowedBy(tumbling).aggregate(() -> "", add, m()).suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())));
            case "hopping_closed" -> win(g(b).windowedBy(hopping).count().suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())));
            case "session_closed" -> win(g(b).windowedBy(sessions).aggregate(() -> "", add, merge, sm()).suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())));
            case "sliding_closed" -> win(g(b).windowedBy(sliding).aggregate(() -> "", add, m()).suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())));
            case "tumbling_final" -> win(g(b).windowedBy(tumbling).emitStrategy(EmitStrategy.onWindowClose()).aggregate(() -> "", add, m().withRetention(ms(10000))));
            case "session_final" -> win(g(b).windowedBy(sessions).emitStrategy(EmitStrategy.onWindowClose()).aggregate(() -> "", add, merge, sm()));
            case "sliding_final" -> win(g(b).windowedBy(sliding).emitStrategy(EmitStrategy.onWindowClose()).aggregate(() -> "", add, m().withRetention(ms(10000))));
            case "time_limit" -> out(g(b).reduce(Oracle::cat, km()).suppress(Suppressed.untilTimeLimit(ms(12), Suppressed.BufferConfig.unbounded())));
            case "time_limit_bound" -> out(g(b).reduce(Oracle::cat, km()).suppress(Suppressed.untilTimeLimit(ms(30), Suppressed.BufferConfig.maxRecords(2))));
            case "stream_inner" -> out(s(b, "one").join(s(b, "two"), join, w, sj), Serdes.String());
            case "stream_left" -> out(s(b, "one").leftJoin(s(b, "two"), join, w, sj), Serdes.String());
            case "stream_outer" -> out(s(b, "one").outerJoin(s(b, "two"), join, w, sj), Serdes.String());
            case "stream_left_eager" -> out(s(b, "one").leftJoin(s(b, "two"), join, eager(w), sj), Serdes.String());
            case "stream_outer_eager" -> out(s(b, "one").outerJoin(s(b, "two"), join, eager(w), sj), Serdes.String());
            case "stream_self" -> { KStream<String, String> one = s(b, "one"); out(one.join(one, join, w, sj), Serdes.String()); }
            case "stream_table" -> out(s(b, "one").join(t(b, "two"), join), Serdes.String());
            case "stream_table_left" -> out(s(b, "one").leftJoin(t(b, "two"), join), Serdes.String());
            case "global" -> out(s(b, "one").join(b.globalTable("two", c()), (k, v) -> v == null ? null : v.substring(0, 1), join), Serdes.String());
            case "global_left" -> out(s(b, "one").leftJoin(b.globalTable("two", c()), (k, v) -> k, join), Serdes.String());
            case "table_inner" -> out(t(b, "one").join(t(b, "two"), join));
            case "table_left" -> out(t(b, "one").leftJoin(t(b, "two"), join));
            case "table_outer" -> out(t(b, "one").outerJoin(t(b, "two"), join));
            case "table_three" -> out(t(b, "one").leftJoin(t(b, "two"), join).outerJoin(t(b, "three"), join));
            case "foreign_inner" -> out(t(b, "one").join(t(b, "two"), v -> v.startsWith("d") ? null : v.substring(0, 1), join, km()));
            case "foreign_left" -> out(t(b, "one").leftJoin(t(b, "two"), v -> v.startsWith("d") ? null : v.substring(0, 1), join, km()));
            case "table_filter" -> out(t(b, "one").filter((k, v) -> !v.startsWith("a")).mapValues(v -> v + "!"));
            case "table_stored_filter" -> out(t(b, "one").filter((k, v) -> !v.startsWith("a"), Materialized.as("kept")).mapValues(v -> v + "!"));
            case "table_group" -> out(t(b, "one").groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), v), Grouped.with(Serdes.String(), Serdes.String()))
                .aggregate(() -> "", add, (k, v, a) -> a.replaceFirst(v, ""), km()));
            case "table_group_reduce" -> out(t(b, "one").filter((k, v) -> !v.startsWith("a")).groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), v), Grouped.with(Serdes.String(), Serdes.String()))
                .reduce(Oracle::cat, (a, v) -> a.replaceFirst(v, ""), km()));
            case "table_group_count" -> out(t(b, "one").groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), v), Grouped.with(Serdes.String(), Serdes.String()))
                .count().toStream().mapValues(v -> v == null ? null : v.toString()), Serdes.String());
            case "to_table" -> out(s(b, "one").selectKey((k, v) -> v == null ? k : v.substring(0, 1)).toTable(km()));
            case "repartition" -> out(s(b, "one").repartition(Repartitioned.with(Serdes.String(), Serdes.String()).withName("again")), Serdes.String());
            case "process" -> {
                b.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("seen"), Serdes.String(), Serdes.String()));
                out(s(b, "one").process(Summing::new, "seen"), Serdes.String());
            }
            default -> newer(name, b, join, tumbling, sessions, add, merge);
        }
    }

    static KTable<String, String> v(StreamsBuilder b, String t) {
        return b.table(t, Materialized.<String, String>as(Stores.persistentVersionedKeyValueStore(t + "-versions", ms(20)))
            .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()));
    }
    static CogroupedKStream<String, String> both(StreamsBuilder b) {
        Aggregator<String, String, String> first = (k, v, a) -> a + v, second = (k, v, a) -> a + "/" + v;
        return g(b).cogroup(first).cogroup(s(b, "two").groupByKey(), second);
    }

    static void newer(String name, StreamsBuilder b, ValueJoiner<String, String, String> join, TimeWindows tumbling, SessionWindows sessions,
            Aggregator<String, String, String> add, Merger<String, String> merge) {
        Joined<String, String, String> grace = Joined.with(Serdes.String(), Serdes.String(), Serdes.String()).withGracePeriod(ms(9));
        switch (name) {
            case "cogroup" -> out(both(b).aggregate(() -> "", km()));
            case "cogroup_tumbling" -> win(both(b).windowedBy(tumbling).aggregate(() -> "", m()));
            case "cogroup_session" -> win(both(b).windowedBy(sessions).aggregate(() -> "", merge, sm()));
            case "cogroup_keys" -> {
                Aggregator<String, String, String> first = (k, v, a) -> a + v, second = (k, v, a) -> a + "/" + v;
                KGroupedStream<String, String> letters = s(b, "two").groupBy((k, v) -> v == null ? k : v.substring(0, 1), Grouped.with(Serdes.String(), Serdes.String()));
                out(g(b).cogroup(first).cogroup(letters, second).aggregate(() -> "", km()));
            }
            case "versioned_table" -> out(v(b, "one"));
            case "versioned_filter" -> out(v(b, "one").filter((k, v) -> !v.startsWith("a")).mapValues(v -> v + "!"));
            case "versioned_join" -> out(s(b, "one").join(v(b, "two"), join), Serdes.String());
            case "versioned_join_left" -> out(s(b, "one").leftJoin(v(b, "two"), join), Serdes.String());
            case "versioned_join_filter" -> out(s(b, "one").join(v(b, "two").filter((k, v) -> !v.startsWith("a")), join), Serdes.String());
            case "versioned_grace" -> out(s(b, "one").join(v(b, "two"), join, grace), Serdes.String());
            case "versioned_grace_left" -> out(s(b, "one").leftJoin(v(b, "two"), join, grace), Serdes.String());
            case "versioned_group" -> out(v(b, "one").groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), v), Grouped.with(Serdes.String(), Serdes.String()))
                .aggregate(() -> "", add, (k, v, a) -> a.replaceFirst(v, ""), km()));
            case "versioned_join_tables" -> out(v(b, "one").outerJoin(v(b, "two"), join));
            case "versioned_to_table" -> out(s(b, "one").selectKey((k, v) -> v == null ? k : v.substring(0, 1)).toTable(
                Materialized.<String, String>as(Stores.persistentVersionedKeyValueStore("kept", ms(20))).withKeySerde(Serdes.String()).withValueSerde(Serdes.String())));
            case "unlimited" -> win(g(b).windowedBy(UnlimitedWindows.of().startOn(java.time.Instant.ofEpochMilli(5))).aggregate(() -> "", add, m()));
            case "hopping_final" -> win(g(b).windowedBy(TimeWindows.ofSizeAndGrace(ms(15), ms(4)).advanceBy(ms(5))).emitStrategy(EmitStrategy.onWindowClose())
                .aggregate(() -> "", add, m().withRetention(ms(10000))));
            case "session_reduce" -> win(s(b, "one").filter((k, v) -> v != null).groupByKey().windowedBy(sessions).reduce(Oracle::cat, sm()));
            case "sliding_reduce" -> win(g(b).windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(10), ms(8))).reduce(Oracle::cat, m()));
            case "values_flat" -> out(s(b, "one").mapValues((k, v) -> k + v).flatMapValues((k, v) -> List.of(v, String.valueOf(k)))
                .merge(s(b, "two")).filterNot((k, v) -> v == null), Serdes.String());
            case "chained_windows" -> win(s(b, "one").selectKey((k, v) -> v == null ? k : v.substring(0, 1)).groupByKey().windowedBy(tumbling).count()
                .toStream((w, c) -> w.key()).mapValues(c -> c.toString()).groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
                .windowedBy(TimeWindows.ofSizeAndGrace(ms(20), ms(9))).aggregate(() -> "", add, m()));
            default -> throw new IllegalArgumentException(name);
        }
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream print = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        TopologyTestDriver driver = null;
        TestOutputTopic<String, String> output = null;
        Map<String, TestInputTopic<String, String>> inputs = new HashMap<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] parts = line.split("\t", -1);
            if (parts[0].equals("topology")) {
                if (driver != null) driver.close();
                StreamsBuilder builder = new StreamsBuilder();
                build(parts[1], builder);
                Properties p = new Properties();
                p.put("application.id", "app");
                p.put("bootstrap.servers", "none:1");
                p.put("statestore.cache.max.bytes", "0");
                p.put("default.key.serde", Serdes.StringSerde.class);
                p.put("default.value.serde", Serdes.StringSerde.class);
                p.put("state.dir", arguments[1]);
                p.put("__emit.interval.ms.kstreams.windowed.aggregation__", "0");
                p.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", "0");
                Topology topology = builder.build();
                print.println("topology\t" + parts[1]);
                for (String each : topology.describe().toString().split("\n")) print.println("text\t" + each);
                driver = new TopologyTestDriver(topology, p, java.time.Instant.ofEpochMilli(0));
                inputs.clear();
                output = driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer());
                continue;
            }
            if (parts[0].equals("advance")) {
                driver.advanceWallClockTime(ms(Long.parseLong(parts[1])));
            } else {
                TopologyTestDriver d = driver;
                TestInputTopic<String, String> input = inputs.computeIfAbsent(parts[1],
                    n -> d.createInputTopic(n, new StringSerializer(), new StringSerializer()));
                input.pipeInput(parts[2].equals(NULL) ? null : parts[2], parts[3].equals(NULL) ? null : parts[3], Long.parseLong(parts[4]));
            }
            print.println("after");
            for (TestRecord<String, String> r : output.readRecordsToList())
                print.println("out\t" + (r.key() == null ? NULL : r.key()) + "\t" + (r.value() == null ? NULL : r.value()) + "\t" + r.timestamp());
        }
        if (driver != null) driver.close();
        print.flush();
        System.exit(0);
    }
}
