import java.nio.file.Path;
import java.util.Map;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

/**
 * One Elasticsearch node in a folder whose `modules` has what speaks HTTP. Ends when its input ends.
 * Arguments: the folder, the ports of HTTP and of the cluster, a name, and the addresses of all nodes.
 */
public class TestElasticsearch {
    public static void main(String[] args) throws Exception {
        LogConfigurator.configureESLogging();
        Settings.Builder settings = Settings.builder()
            .put("path.home", args[0])
            .put("cluster.name", "test")
            .put("node.name", args[3])
            .put("network.host", "127.0.0.1")
            .put("http.port", args[1])
            .put("transport.port", args[2])
            .put("node.processors", 1)
            .put("cluster.routing.allocation.disk.threshold_enabled", false);
        String[] others = args[4].split(",");
        if (others.length == 1) {
            settings.put("discovery.type", "single-node");
        } else {
            settings.putList("discovery.seed_hosts", others);
            settings.putList("cluster.initial_master_nodes", others);
        }
        Path home = Path.of(args[0]);
        Environment environment =
            InternalSettingsPreparer.prepareEnvironment(settings.build(), Map.of(), home, () -> args[3]);
        PluginsLoader loader = PluginsLoader.createPluginsLoader(
            PluginsLoader.loadModulesBundles(home.resolve("modules")),
            PluginsLoader.loadPluginsBundles(home.resolve("plugins")),
            Map.of(),
            false);
        new Node(environment, loader).start();
        while (System.in.read() >= 0) {}
        System.exit(0);
    }
}
