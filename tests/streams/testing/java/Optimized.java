import java.util.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;

/** Prints the descriptions of named topologies that Kafka Streams has optimized: the reference of the DSL's. */
public class Optimized {
    static KStream<String, String> s(StreamsBuilder b, String t) {
        return b.stream(t, Consumed.with(Serdes.String(), Serdes.String()));
    }
    static KTable<String, String> t(StreamsBuilder b, String t) {
        return b.table(t, Consumed.with(Serdes.String(), Serdes.String()));
    }
    static Grouped<String, String> g() { return Grouped.with(Serdes.String(), Serdes.String()); }
    static Grouped<String, String> g(String name) { return Grouped.with(name, Serdes.String(), Serdes.String()); }
    static String cat(String a, String b) { return a + b; }
    static String initial(String k, String v) { return v.substring(0, 1); }
    static void out(KStream<String, String> k, String t) { k.to(t, Produced.with(Serdes.String(), Serdes.String())); }
    static void count(KStream<String, String> k, String t) {
        out(k.groupByKey(g()).count().toStream().mapValues(v -> v.toString()), t);
    }
    static void reduce(KStream<String, String> k, String t) { out(k.groupByKey(g()).reduce(Optimized::cat).toStream(), t); }

    static void build(String name, StreamsBuilder b) {
        JoinWindows w = JoinWindows.ofTimeDifferenceAndGrace(java.time.Duration.ofMillis(10), java.time.Duration.ofMillis(5));
        StreamJoined<String, String, String> sj = StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String());
        KStream<String, String> one = s(b, "one");
        switch (name) {
            case "two_groups" -> {
                KStream<String, String> keyed = one.selectKey(Optimized::initial);
                count(keyed, "counts");
                reduce(keyed, "texts");
            }
            case "steps_between" -> {
                KStream<String, String> keyed = one.map((k, v) -> KeyValue.pair(initial(k, v), v));
                count(keyed.filter((k, v) -> !v.endsWith("3")), "counts");
                KStream<String, String> seen = keyed.peek((k, v) -> { });
                reduce(seen, "texts");
                out(seen, "copies");
                out(keyed, "keyed");
            }
            case "values_change" -> {
                KStream<String, String> keyed = one.selectKey(Optimized::initial);
                count(keyed.mapValues(v -> v + "!"), "counts");
                reduce(keyed, "texts");
                count(keyed, "more");
            }
            case "one_group" -> count(one.selectKey(Optimized::initial), "counts");
            case "named" -> {
                KStream<String, String> keyed = one.selectKey(Optimized::initial);
                out(keyed.groupByKey(g("first")).count().toStream().mapValues(v -> v.toString()), "counts");
                out(keyed.groupByKey(g("second")).reduce(Optimized::cat).toStream(), "texts");
            }
            case "join" -> {
                KStream<String, String> keyed = one.selectKey(Optimized::initial);
                out(keyed.join(s(b, "two"), Optimized::cat, w, sj), "joined");
                count(keyed, "counts");
            }
            case "join_table" -> {
                KStream<String, String> keyed = one.flatMap((k, v) -> List.of(KeyValue.pair(initial(k, v), v)));
                out(keyed.join(t(b, "two"), Optimized::cat, Joined.with(Serdes.String(), Serdes.String(), Serdes.String())), "joined");
                count(keyed, "counts");
            }
            case "merged" -> {
                KStream<String, String> all = one.selectKey(Optimized::initial)
                    .merge(s(b, "two").selectKey((k, v) -> v.substring(1)));
                count(all, "counts");
                reduce(all, "texts");
            }
            case "merged_half" -> {
                KStream<String, String> all = one.selectKey(Optimized::initial).merge(s(b, "two"));
                count(all, "counts");
                reduce(all, "texts");
            }
            case "to_table" -> {
                KStream<String, String> keyed = one.selectKey(Optimized::initial);
                out(keyed.toTable(Materialized.<String, String, org.apache.kafka.streams.state.KeyValueStore<org.apache.kafka.common.utils.Bytes, byte[]>>as("kept").withKeySerde(Serdes.String()).withValueSerde(Serdes.String())).toStream(), "rows");
                count(keyed, "counts");
            }
            case "two_keys" -> {
                KStream<String, String> keyed = one.selectKey(Optimized::initial);
                count(keyed, "counts");
                KStream<String, String> again = keyed.selectKey((k, v) -> v);
                count(again, "more");
                reduce(again, "texts");
            }
            case "explicit" -> {
                KStream<String, String> moved = one.selectKey(Optimized::initial)
                    .repartition(Repartitioned.<String, String>as("moved").withKeySerde(Serdes.String()).withValueSerde(Serdes.String()));
                count(moved, "counts");
                reduce(moved, "texts");
            }
            default -> throw new IllegalArgumentException(name);
        }
    }

    public static void main(String[] names) {
        for (String name : names) {
            Properties config = new Properties();
            config.put(StreamsConfig.APPLICATION_ID_CONFIG, "application");
            config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
            config.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG,
                "reuse.ktable.source.topics,merge.repartition.topics");
            StreamsBuilder builder = new StreamsBuilder();
            build(name, builder);
            System.out.println("topology\t" + name);
            for (String line : builder.build(config).describe().toString().split("\n")) System.out.println("text\t" + line);
        }
    }
}
