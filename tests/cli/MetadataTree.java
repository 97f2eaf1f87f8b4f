// Prints the tree of a metadata log as Kafka's own image has it: folders with a slash, files with their text.
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.node.MetadataImageNode;
import org.apache.kafka.image.node.MetadataNode;
import org.apache.kafka.image.node.printer.MetadataNodePrinter;
import org.apache.kafka.image.node.printer.MetadataNodeRedactionCriteria;
import org.apache.kafka.metadata.util.BatchFileReader;
import org.apache.kafka.server.common.ApiMessageAndVersion;

public class MetadataTree {
    public static void main(String[] arguments) throws Exception {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        MetadataProvenance at = MetadataProvenance.EMPTY;
        try (BatchFileReader reader = new BatchFileReader.Builder().setPath(arguments[0]).build()) {
            while (reader.hasNext()) {
                BatchFileReader.BatchAndType found = reader.next();
                if (found.isControl()) continue;
                for (ApiMessageAndVersion record : found.batch().records()) {
                    // The metadata transaction around a first start takes effect as a whole.
                    if (!record.message().getClass().getSimpleName().contains("Transaction")) {
                        delta.replay(record.message());
                    }
                }
                at = new MetadataProvenance(found.batch().lastOffset(), found.batch().epoch(),
                    found.batch().appendTimestamp(), true);
            }
        }
        print("/image", new MetadataImageNode(delta.apply(at)));
    }

    static void print(String path, MetadataNode node) {
        if (node.isDirectory()) {
            System.out.println(path + "/");
            List<String> names = new ArrayList<>(node.childNames());
            Collections.sort(names);
            names.forEach(name -> print(path + "/" + name, node.child(name)));
            return;
        }
        StringBuilder text = new StringBuilder();
        node.print(new MetadataNodePrinter() {
            public MetadataNodeRedactionCriteria redactionCriteria() {
                return MetadataNodeRedactionCriteria.Disabled.INSTANCE;
            }

            public void enterNode(String name) { }

            public void leaveNode() { }

            public void output(String line) {
                text.append(line);
            }
        });
        System.out.println(path + " = " + text);
    }
}
