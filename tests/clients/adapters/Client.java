// The Java client and Kafka's tools as tests use them, in one process; records are lines as in records.py.

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Exit;

public class Client {
    static final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    static final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    static final String END = "end";

    // Client: commands on the input, one after the other until it ends; each is a line of words with tabs
    // between them, the command's own lines, and "end". The answer is its lines, then "end" or "failed REASON".
    // Client member TOPIC key=value ... : a member of a group, in a process that may be killed.
    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 0) {
            member(settings(List.of(arguments)), arguments[1]);
            out.flush();
            return;
        }
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                run(List.of(line.split("\t")));
                out.println(END);
            } catch (Throwable error) {
                StringWriter trace = new StringWriter();
                error.printStackTrace(new PrintWriter(trace));
                out.println("failed " + trace.toString().replaceAll("\\s+", " "));
            }
            out.flush();
        }
        System.exit(0);  // whatever threads a tool has left
    }

    static void run(List<String> words) throws Exception {
        List<String> lines = new ArrayList<>();
        for (String line = in.readLine(); !line.equals(END); line = in.readLine()) lines.add(line);
        Properties settings = settings(words);
        String topic = words.get(1);
        switch (words.get(0)) {
            case "produce" -> produce(settings, topic, lines);
            case "transact" -> transact(settings, topic, lines);
            case "consume" -> consume(settings, topic, Integer.parseInt(words.get(2)));
            case "tool" -> tool(topic, words.subList(2, words.size()));
            case "open" -> open(settings, topic);
            case "write" -> lastProducer.send(parse(topic, lines.get(0))).get();
            case "read" -> out.println(lastConsumer.poll(Duration.ofMillis(500)).count());
            case "close" -> {
                lastProducer.close(Duration.ZERO);
                lastConsumer.close(Duration.ZERO);
            }
            case "principals" -> principals(topic, lines);
            default -> Sharing.run(words, settings, lines);
        }
    }

    static Properties settings(List<String> words) {
        Properties settings = new Properties();
        for (String word : words) {
            int equals = word.indexOf('=');
            if (equals >= 0) settings.put(word.substring(0, equals), word.substring(equals + 1));
        }
        String token = settings.getProperty("sasl.oauthbearer.token.endpoint.url");
        if (token != null) System.setProperty("org.apache.kafka.sasl.oauthbearer.allowed.urls", token);
        return settings;
    }

    // One of Kafka's console tools: what it prints, unless it would end its process with another status than 0.
    static void tool(String name, List<String> arguments) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        PrintStream before = System.out;
        List<Integer> statuses = new ArrayList<>();  // the first one counts: tools catch what their exit throws
        Exit.setExitProcedure((status, message) -> {
            statuses.add(status);
            throw new IllegalStateException("exit " + status);
        });
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        try {
            Class.forName("org.apache.kafka.tools." + name).getMethod("main", String[].class)
                .invoke(null, (Object) arguments.toArray(new String[0]));
        } catch (InvocationTargetException error) {
            if (statuses.isEmpty() || statuses.get(0) != 0) {
                throw new Exception(name + ": " + printed.toString(StandardCharsets.UTF_8), error.getCause());
            }
        } finally {
            System.setOut(before);
        }
        out.println(printed.toString(StandardCharsets.UTF_8));
    }

    // Who clients are by their certificates, each a line of base64, and by rules: "name -> who|", "-" for nobody.
    static void principals(String rules, List<String> certificates) throws Exception {
        SslPrincipalMapper mapper = SslPrincipalMapper.fromRules(rules);
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        for (String line : certificates) {
            var octets = new ByteArrayInputStream(Base64.getDecoder().decode(line));
            String name = ((X509Certificate) factory.generateCertificate(octets)).getSubjectX500Principal().getName();
            try {
                out.println(name + " -> " + mapper.getName(name) + "|");
            } catch (java.io.IOException nobody) {
                out.println(name + " -> -|");
            }
        }
    }

    static KafkaProducer<byte[], byte[]> producer(Properties settings) {
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(Properties settings) {
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static void produce(Properties settings, String topic, List<String> lines) throws Exception {
        try (var producer = producer(settings)) {
            List<Future<?>> sent = new ArrayList<>();
            for (String line : lines) {
                sent.add(producer.send(parse(topic, line)));
            }
            for (Future<?> future : sent) future.get();
        }
    }

    // Records up to a line that says "commit" or "abort" are one transaction.
    static void transact(Properties settings, String topic, List<String> lines) throws Exception {
        try (var producer = producer(settings)) {
            producer.initTransactions();
            boolean open = false;
            for (String line : lines) {
                if (!open) producer.beginTransaction();
                open = !line.equals("commit") && !line.equals("abort");
                if (open) producer.send(parse(topic, line));
                else if (line.equals("commit")) producer.commitTransaction();
                else {
                    producer.flush();
                    producer.abortTransaction();
                }
            }
        }
    }

    static KafkaProducer<byte[], byte[]> lastProducer;
    static KafkaConsumer<byte[], byte[]> lastConsumer;

    // A producer and a consumer that stay connected from one command to the next.
    static void open(Properties settings, String topic) {
        lastProducer = producer(settings);
        lastConsumer = consumer(settings);
        lastConsumer.subscribe(List.of(topic));
    }

    static void consume(Properties settings, String topic, int partitions) {
        try (var consumer = consumer(settings)) {
            List<TopicPartition> assigned = new ArrayList<>();
            for (int number = 0; number < partitions; number++) assigned.add(new TopicPartition(topic, number));
            consumer.assign(assigned);
            consumer.seekToBeginning(assigned);
            Map<TopicPartition, Long> ends = consumer.endOffsets(assigned);
            while (assigned.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                for (var record : consumer.poll(Duration.ofMillis(200))) out.println(format(record));
            }
        }
    }

    static void member(Properties settings, String topic) throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        Thread reader = new Thread(() -> {
            try {
                while (in.read() >= 0) { }
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            } finally {
                over.set(true);
            }
        });
        reader.setDaemon(true);
        reader.start();
        try (var consumer = consumer(settings)) {
            consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) { }

                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    out.println("assigned " + consumer.assignment().stream()
                        .map(each -> String.valueOf(each.partition())).collect(Collectors.joining(" ")));
                    out.flush();
                }
            });
            while (!over.get()) {
                for (var record : consumer.poll(Duration.ofMillis(100))) out.println("record " + format(record));
                out.flush();
            }
        }
    }

    static ProducerRecord<byte[], byte[]> parse(String topic, String line) {
        String[] fields = line.split(" ");
        var record = new ProducerRecord<>(
            topic, Integer.valueOf(fields[0]), Long.valueOf(fields[2]), decode(fields[3]), decode(fields[4]));
        if (!fields[5].equals(".")) {
            for (String pair : fields[5].split(",")) {
                String[] header = pair.split("=");
                record.headers().add(new String(decode(header[0]), StandardCharsets.UTF_8), decode(header[1]));
            }
        }
        return record;
    }

    static String format(ConsumerRecord<byte[], byte[]> record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(encode(header.key().getBytes(StandardCharsets.UTF_8)) + "=" + encode(header.value()));
        }
        return String.join(" ",
            String.valueOf(record.partition()), String.valueOf(record.offset()), String.valueOf(record.timestamp()),
            encode(record.key()), encode(record.value()), headers.isEmpty() ? "." : String.join(",", headers));
    }

    static String encode(byte[] data) {
        if (data == null) return "-";
        return data.length == 0 ? "_" : Base64.getUrlEncoder().withoutPadding().encodeToString(data);
    }

    static byte[] decode(String text) {
        if (text.equals("-")) return null;
        return text.equals("_") ? new byte[0] : Base64.getUrlDecoder().decode(text);
    }
}
