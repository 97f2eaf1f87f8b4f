import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** A server of MongoDB's protocol in memory, with an oplog for change streams. Ends when its input ends. */
public class TestMongo {
    /** The lowest version that the Python driver accepts. */
    record Version() implements MongoVersion {
        public List<Integer> getVersionArray() {
            return List.of(4, 4, 0);
        }

        public int getWireVersion() {
            return 9;
        }
    }

    public static void main(String[] args) throws Exception {
        MemoryBackend backend = new MemoryBackend();
        backend.version(new Version());
        MongoServer server = new MongoServer(backend);
        server.enableOplog();
        server.bind("127.0.0.1", Integer.parseInt(args[0]));
        while (System.in.read() >= 0) {}
        System.exit(0);
    }
}
