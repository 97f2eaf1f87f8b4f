import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Reads messages with Apache Kafka's own classes and writes them again.
 * In: lines of name, version and bytes in hexadecimal. Out, for each: bytes left over, the bytes it writes, and the
 * message as JSON; or the word "error" and why.
 */
public class ApacheEcho {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.raft.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.",
    };

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ", -1);
            String answer;
            try {
                answer = echo(parts[0], Short.parseShort(parts[1]), HexFormat.of().parseHex(parts[2]));
            } catch (Exception error) {
                answer = "error " + error;
            }
            out.println(answer);
        }
        out.flush();
    }

    private static String echo(String name, short version, byte[] bytes) throws Exception {
        Class<?> type = find(name);
        Message message = (Message) type.getDeclaredConstructor().newInstance();
        var input = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
        message.read(input, version);
        ByteBuffer written = MessageUtil.toByteBufferAccessor(message, version).buffer();
        written.rewind();
        byte[] output = new byte[written.remaining()];
        written.get(output);
        Object json = Class.forName(type.getName() + "JsonConverter")
            .getMethod("write", type, short.class)
            .invoke(null, message, version);
        return input.remaining() + " " + HexFormat.of().formatHex(output) + " " + json;
    }

    private static Class<?> find(String name) throws ClassNotFoundException {
        for (String prefix : PACKAGES) {
            for (String suffix : new String[] {"", "Data"}) {
                try {
                    return Class.forName(prefix + name + suffix);
                } catch (ClassNotFoundException next) {
                    // another package
                }
            }
        }
        throw new ClassNotFoundException(name);
    }
}
