import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** One OpenSearch node in a folder, with its HTTP API on loopback. Ends when its input ends. */
public class TestSearchNode extends Node {
    TestSearchNode(Environment environment) {
        super(environment, List.of(Netty4Plugin.class), false);
    }

    public static void main(String[] args) throws Exception {
        Settings settings = Settings.builder()
            .put("path.home", args[0])
            .put("cluster.name", "test")
            .put("node.name", "test")
            .put("network.host", "127.0.0.1")
            .put("http.port", args[1])
            .put("transport.port", args[2])
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            .put("discovery.type", "single-node")
            .put("node.processors", 1)
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        Path home = Path.of(args[0]);
        Environment environment =
            InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), home, () -> "test");
        new TestSearchNode(environment).start();
        while (System.in.read() >= 0) {}
        System.exit(0);
    }
}
