import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/**
 * One OpenSearch node in a folder, with its HTTP API on loopback. Ends when its input ends.
 * Arguments: the folder, the ports of HTTP and of the cluster, a name, and the addresses of all nodes.
 */
public class TestOpenSearch extends Node {
    TestOpenSearch(Environment environment) {
        super(environment, List.of(Netty4Plugin.class), false);
    }

    public static void main(String[] args) throws Exception {
        Settings.Builder settings = Settings.builder()
            .put("path.home", args[0])
            .put("cluster.name", "test")
            .put("node.name", args[3])
            .put("network.host", "127.0.0.1")
            .put("http.port", args[1])
            .put("transport.port", args[2])
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            .put("node.processors", 1)
            .put("cluster.routing.allocation.disk.threshold_enabled", false);
        String[] others = args[4].split(",");
        if (others.length == 1) {
            settings.put("discovery.type", "single-node");
        } else {
            settings.putList("discovery.seed_hosts", others);
            settings.putList("cluster.initial_cluster_manager_nodes", others);
        }
        Path home = Path.of(args[0]);
        Environment environment =
            InternalSettingsPreparer.prepareEnvironment(settings.build(), Map.of(), home, () -> args[3]);
        new TestOpenSearch(environment).start();
        while (System.in.read() >= 0) {}
        System.exit(0);
    }
}
