import java.io.BufferedReader;
import java.io.File;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.util.Properties;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.security.UserGroupInformation;

/** One namenode and two datanodes on loopback: `TestHdfs folder http-port rpc-port`. Ends with its standard
 * input; its lines `stop` and `start` are for the namenode. `more.properties` in the folder has more settings. */
public final class TestHdfs {
    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        conf.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, new File(args[0], "hdfs").getPath());
        conf.set("dfs.namenode.http-address", "127.0.0.1:" + args[1]);
        conf.set("dfs.datanode.hostname", "127.0.0.1");
        conf.setInt("dfs.ls.limit", 10); // so that listings come in pages
        File more = new File(args[0], "more.properties");
        if (more.exists()) {
            Properties found = new Properties();
            try (FileReader reader = new FileReader(more)) {
                found.load(reader);
            }
            found.forEach((name, value) -> conf.set((String) name, (String) value));
            UserGroupInformation.setConfiguration(conf);
            if (UserGroupInformation.isSecurityEnabled()) {
                UserGroupInformation.loginUserFromKeytab(
                    conf.get("dfs.namenode.kerberos.principal"), conf.get("dfs.namenode.keytab.file"));
            }
        }
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf)
            .nameNodePort(Integer.parseInt(args[2]))
            .nameNodeHttpPort(Integer.parseInt(args[1]))
            .numDataNodes(2)
            .build();
        cluster.waitActive();
        cluster.getFileSystem().mkdirs(new Path("/data"), new FsPermission((short) 0777));
        cluster.getFileSystem().setPermission(new Path("/data"), new FsPermission((short) 0777));
        new File(args[0], "ready").createNewFile();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        int number = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals("stop")) {
                cluster.shutdownNameNode(0);
            } else if (line.equals("start")) {
                cluster.restartNameNode(0);
            }
            new File(args[0], "done" + number++).createNewFile();
        }
        cluster.shutdown();
    }
}
