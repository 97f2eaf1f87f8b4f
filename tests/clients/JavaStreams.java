import java.time.Duration;
import java.util.Properties;
import java.util.Scanner;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words with a repartition topic and a store. Arguments: source, target, then settings as name=value.
 * Takes a word a line: "tasks" prints the active and standby tasks, "hosts" the instances that serve the store,
 * "state" the state, "fail" asks the whole application to stop, "close" stops this instance.
 */
public class JavaStreams {
    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put("commit.interval.ms", 100);
        settings.put("statestore.cache.max.bytes", 0);
        settings.put("num.stream.threads", 1);
        settings.put("reconnect.backoff.max.ms", 100);
        settings.put("main.consumer.auto.offset.reset", "earliest");
        for (int at = 2; at < args.length; at++) {
            String[] pair = args[at].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        boolean[] fails = {false};
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(args[0], Consumed.with(Serdes.String(), Serdes.String()))
            .peek((key, word) -> {
                if (fails[0]) {
                    throw new IllegalStateException("asked to fail");
                }
            })
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(args[1], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> {
            System.err.println(error);
            return fails[0]
                ? StreamThreadExceptionResponse.SHUTDOWN_APPLICATION
                : StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.err.println("state " + now));
        streams.start();
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String line = lines.nextLine();
            if (line.equals("tasks")) {
                StringBuilder found = new StringBuilder();
                for (ThreadMetadata thread : streams.metadataForLocalThreads()) {
                    thread.activeTasks().forEach(task -> found.append(" active:").append(task.taskId()));
                    thread.standbyTasks().forEach(task -> found.append(" standby:").append(task.taskId()));
                }
                say("tasks" + found);
            } else if (line.equals("hosts")) {
                StringBuilder found = new StringBuilder();
                streams.streamsMetadataForStore("counts").forEach(host -> found.append(" ")
                    .append(host.hostInfo().host()).append(":").append(host.hostInfo().port())
                    .append("/").append(host.topicPartitions().size())
                    .append("/").append(host.standbyTopicPartitions().size()));
                say("hosts" + found);
            } else if (line.equals("state")) {
                say("state " + streams.state());
            } else if (line.equals("fail")) {
                fails[0] = true;
                say("failing");
            } else if (line.equals("close")) {
                streams.close(Duration.ofSeconds(20));
                say("closed");
                return;
            }
        }
        streams.close(Duration.ofSeconds(20));
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
