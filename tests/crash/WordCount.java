import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words exactly once, until it is killed. Every word changes its count by one, and every count is written.
 * Arguments: address, source, target, application id, folder for state. Prints a line for every word it counts.
 */
public class WordCount {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("application.id", args[3]);
        settings.put("state.dir", args[4]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("commit.interval.ms", 50);
        settings.put("statestore.cache.max.bytes", 0);
        settings.put("num.stream.threads", 1);
        settings.put("transaction.timeout.ms", 5000);
        settings.put("reconnect.backoff.max.ms", 100);
        settings.put("main.consumer.auto.offset.reset", "earliest");
        settings.put("main.consumer.session.timeout.ms", 2000);
        settings.put("main.consumer.heartbeat.interval.ms", 300);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(args[1], Consumed.with(Serdes.String(), Serdes.String()))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count()
            .toStream()
            .peek((word, count) -> { System.out.println(1); System.out.flush(); })
            .mapValues(count -> Long.toString(count))
            .to(args[2], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.REPLACE_THREAD);
        streams.start();
        Thread.currentThread().join();
    }
}
