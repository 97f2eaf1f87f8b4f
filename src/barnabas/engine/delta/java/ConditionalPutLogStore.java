package org.barnabas.lake;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log on S3 for several drivers: a commit is a conditional put (If-None-Match: *), so one of several
 * drivers wins each version, and Delta lets the others try the next one.
 *
 * <p>Hadoop's S3A file system puts conditionally only through {@code createFile}, with the option below, and
 * refuses the option where it cannot. The log stores that Delta brings do not use it.
 */
public class ConditionalPutLogStore extends HadoopFileSystemLogStore {
  private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";
  private static final String CHANGED = "org.apache.hadoop.fs.s3a.RemoteFileChangedException"; // status 412
  private static final String EXISTS = "org.apache.hadoop.fs.FileAlreadyExistsException";

  public ConditionalPutLogStore(Configuration hadoopConf) {
    super(hadoopConf);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration hadoopConf)
      throws IOException {
    // All bytes first: closing a stream after a failure would put what was written so far.
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      bytes.write((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
    }
    FileSystem fs = path.getFileSystem(hadoopConf);
    FSDataOutputStreamBuilder<?, ?> builder = fs.createFile(path).recursive().overwrite(overwrite);
    if (!overwrite) {
      builder = builder.must(CONDITIONAL, true);
    }
    try {
      FSDataOutputStream stream = builder.build();
      stream.write(bytes.toByteArray());
      stream.close();
    } catch (IOException e) {
      String kind = e.getClass().getName();
      if (!overwrite && (kind.equals(CHANGED) || kind.equals(EXISTS))) {
        throw new FileAlreadyExistsException(path.toString());
      }
      throw e;
    }
  }

  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration hadoopConf) {
    return false;
  }
}
