import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.apache.iceberg.types.Types;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Apache Iceberg in Java: a REST catalog on loopback, and a reader of tables. */
public class IcebergPrograms {
  public static void main(String[] arguments) throws Exception {
    Map<String, String> properties = new HashMap<>();
    for (int place = 2; place < arguments.length; place++) {
      int at = arguments[place].indexOf('=');
      properties.put(arguments[place].substring(0, at), arguments[place].substring(at + 1));
    }
    Catalog catalog = CatalogUtil.buildIcebergCatalog("iceberg", properties, new Configuration());
    if (arguments[0].equals("serve")) {
      serve(catalog, Integer.parseInt(arguments[1]));
    } else {
      read(catalog, arguments[1]);
    }
  }

  private static void serve(Catalog catalog, int port) throws Exception {
    ServletContextHandler handler = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    handler.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    Server server = new Server(new InetSocketAddress("127.0.0.1", port));
    server.setHandler(handler);
    server.start();
    while (System.in.read() >= 0) {}
    System.exit(0);
  }

  private static void read(Catalog catalog, String name) throws Exception {
    Table table = catalog.loadTable(TableIdentifier.parse(name));
    try (CloseableIterable<Record> rows = IcebergGenerics.read(table).build()) {
      for (Record row : rows) {
        System.out.println(shown(row));
      }
    }
    System.exit(0);
  }

  private static String shown(Object value) {
    if (value instanceof Record) {
      Record row = (Record) value;
      List<String> parts = new ArrayList<>();
      for (Types.NestedField field : row.struct().fields()) {
        parts.add("\"" + field.name() + "\": " + shown(row.getField(field.name())));
      }
      return "{" + String.join(", ", parts) + "}";
    }
    if (value instanceof List) {
      List<String> parts = new ArrayList<>();
      for (Object each : (List<?>) value) {
        parts.add(shown(each));
      }
      return "[" + String.join(", ", parts) + "]";
    }
    if (value == null || value instanceof Number || value instanceof Boolean) {
      return String.valueOf(value);
    }
    return "\"" + value + "\"";
  }
}
