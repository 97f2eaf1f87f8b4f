import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.AbstractMongoBackend;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/**
 * A server of MongoDB's protocol in memory, with an oplog for change streams; or, with a second argument, with its
 * data in that file and without change streams. Ends when its input ends.
 */
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
        AbstractMongoBackend backend = args.length > 1 ? new H2Backend(args[1]) : new MemoryBackend();
        backend.version(new Version());
        MongoServer server = new MongoServer(backend);
        if (args.length == 1) {
            server.enableOplog();
        }
        server.bind("127.0.0.1", Integer.parseInt(args[0]));
        while (System.in.read() >= 0) {}
        server.shutdownNow();
        backend.close();
        System.exit(0);
    }
}
