import java.text.SimpleDateFormat;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.Set;
import java.util.TimeZone;

/** Prints random patterns of SimpleDateFormat with texts and the times that it reads from them, as lines of JSON. */
public class DatesOracle {
    private static final String[] FIELDS = {
        "yyyy", "YYYY", "MM", "MMM", "dd", "W", "F", "E", "EEEE", "u", "DDD", "ww", "HH", "yy", "YY", "G"
    };
    private static final long SPAN_MS = 60L * 366 * 86_400_000;

    public static void main(String[] arguments) throws Exception {
        Random random = new Random(11);
        for (int number = 0; number < 700; number++) {
            String pattern = pattern(random);
            SimpleDateFormat format = new SimpleDateFormat(pattern, Locale.US);
            format.setTimeZone(TimeZone.getTimeZone("UTC"));
            for (int text = 0; text < 3; text++) {
                String printed = format.format(new Date((long) (random.nextDouble() * SPAN_MS)));
                String read = text < 2 ? printed : changed(pattern, printed, random);
                System.out.printf("[\"%s\", \"%s\", %d]%n", pattern, read, format.parse(read).getTime());
            }
        }
    }

    private static String pattern(Random random) {
        List<String> fields = new ArrayList<>(Arrays.asList(FIELDS));
        Collections.shuffle(fields, random);
        Set<Character> used = new HashSet<>();
        List<String> found = new ArrayList<>();
        for (String field : fields.subList(0, 1 + random.nextInt(6))) {
            if (used.add(field.charAt(0))) {
                found.add(field);
            }
        }
        return String.join("/", found);
    }

    /** The text with other numbers of days and weeks, also with those that there are not. */
    private static String changed(String pattern, String text, Random random) {
        String[] fields = pattern.split("/");
        String[] values = text.split("/");
        for (int index = 0; index < values.length; index++) {
            if ("WFuwDd".indexOf(fields[index].charAt(0)) >= 0) {
                values[index] = Integer.toString(random.nextInt(80) - 9);
            }
        }
        return String.join("/", values);
    }
}
