import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/**
 * Apache Kafka's sticky assignor, a problem a line:
 * standbys;subtopology:tasks:stateful,...;member:process:active tasks:standby tasks,...
 * where tasks are subtopology_partition, with blanks between them. Prints an assignment a line.
 */
public class JavaAssignor {
    public static void main(String[] args) throws Exception {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split(";", -1);
            TreeMap<String, String[]> subtopologies = new TreeMap<>();
            for (String each : parts[1].split(",")) {
                String[] fields = each.split(":");
                subtopologies.put(fields[0], fields);
            }
            Map<String, AssignmentMemberSpec> members = new HashMap<>();
            for (String each : parts[2].split(",")) {
                String[] fields = each.split(":", -1);
                members.put(fields[0], new AssignmentMemberSpec(Optional.empty(), Optional.empty(),
                    tasks(fields[2]), tasks(fields[3]), Map.of(), fields[1], Map.of(), Map.of(), Map.of()));
            }
            Map<String, String> configs = Map.of("num.standby.replicas", parts[0]);
            TopologyDescriber topology = new TopologyDescriber() {
                public List<String> subtopologies() {
                    return new ArrayList<>(subtopologies.keySet());
                }
                public int maxNumInputPartitions(String name) {
                    return Integer.parseInt(subtopologies.get(name)[1]);
                }
                public boolean isStateful(String name) {
                    return subtopologies.get(name)[2].equals("1");
                }
            };
            GroupAssignment found = new StickyTaskAssignor().assign(
                new GroupSpecImpl(Collections.unmodifiableMap(members), configs), topology);
            StringBuilder shown = new StringBuilder();
            new TreeMap<>(found.members()).forEach((member, assignment) -> shown.append(member)
                .append(":").append(text(assignment.activeTasks()))
                .append(":").append(text(assignment.standbyTasks())).append(","));
            System.out.println(shown);
        }
    }

    private static Map<String, Set<Integer>> tasks(String text) {
        Map<String, Set<Integer>> found = new HashMap<>();
        for (String each : text.split(" ")) {
            if (!each.isEmpty()) {
                String[] pair = each.split("_");
                found.computeIfAbsent(pair[0], name -> new HashSet<>()).add(Integer.parseInt(pair[1]));
            }
        }
        return found;
    }

    private static String text(Map<String, Set<Integer>> tasks) {
        List<String> found = new ArrayList<>();
        new TreeMap<>(tasks).forEach((name, numbers) ->
            new TreeSet<>(numbers).forEach(number -> found.add(name + "_" + number)));
        return String.join(" ", found);
    }
}
