// What a Java client of any version since 0.11 can do with a broker: lines "STEP OUTCOME".
// Compiled with the oldest client and run with each one; what later ones have another signature for is looked up.

import java.lang.reflect.InvocationTargetException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class OldClient {
    interface Step {
        Object run() throws Exception;
    }

    static final int RECORDS = 20, SECONDS = 20;
    static String servers, topic;

    // OldClient SERVERS TOPIC, where the topic is there already and nobody has written to it.
    public static void main(String[] arguments) {
        servers = arguments[0];
        topic = arguments[1];
        step("cluster", OldClient::cluster);
        step("topics", OldClient::topics);
        step("produce", () -> produce("false"));
        step("produce once", () -> produce("true"));
        step("consume", () -> read(consumer("read_uncommitted"), 2 * RECORDS));
        step("group", OldClient::group);
        step("transactions", OldClient::transactions);
        System.exit(0);
    }

    static void step(String name, Step step) {
        String outcome;
        try {
            outcome = String.valueOf(step.run());
        } catch (Throwable error) {
            boolean wrapped = error instanceof ExecutionException || error instanceof InvocationTargetException;
            outcome = (wrapped ? error.getCause() : error).getClass().getSimpleName();
        }
        System.out.println(name + "\t" + outcome);
    }

    static Properties settings() {
        Properties all = new Properties();
        all.put("bootstrap.servers", servers);
        all.put("request.timeout.ms", "" + SECONDS * 1000);
        return all;
    }

    static KafkaProducer<byte[], byte[]> producer(String setting, String value) {
        Properties all = settings();
        all.put("max.block.ms", "" + SECONDS * 1000);
        all.put(setting, value);
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(String isolation) {
        Properties all = settings();
        all.put("request.timeout.ms", "" + (SECONDS + 20) * 1000);  // longer than a session, which 0.11 wants
        all.put("group.id", "group-" + topic);
        all.put("auto.offset.reset", "earliest");
        all.put("enable.auto.commit", "false");
        all.put("isolation.level", isolation);
        return new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static Object cluster() throws Exception {
        try (AdminClient admin = AdminClient.create(settings())) {
            return admin.describeCluster().nodes().get(SECONDS, TimeUnit.SECONDS).size();
        }
    }

    static Object topics() throws Exception {
        String other = topic + "-other";
        try (AdminClient admin = AdminClient.create(settings())) {
            admin.createTopics(Collections.singleton(new NewTopic(other, 2, (short) 1))).all().get(SECONDS, TimeUnit.SECONDS);
            long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
            while (!admin.listTopics().names().get(SECONDS, TimeUnit.SECONDS).contains(other)
                   && System.nanoTime() < until) Thread.sleep(20);
            Object found = admin.listTopics().names().get().contains(other);
            admin.deleteTopics(Collections.singleton(other)).all().get(SECONDS, TimeUnit.SECONDS);
            return found;
        }
    }

    static Object produce(String idempotent) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer("enable.idempotence", idempotent)) {
            return send(producer).size();
        }
    }

    static List<Object> send(KafkaProducer<byte[], byte[]> producer) throws Exception {
        List<Future<?>> sent = new ArrayList<>();
        for (int number = 0; number < RECORDS; number++) {
            sent.add(producer.send(new ProducerRecord<>(topic, 0, null, new byte[] {(byte) number})));
        }
        List<Object> done = new ArrayList<>();
        for (Future<?> one : sent) done.add(one.get(SECONDS, TimeUnit.SECONDS));
        return done;
    }

    static Object read(KafkaConsumer<byte[], byte[]> consumer, int wanted) throws Exception {
        try {
            Collection<TopicPartition> all = Collections.singleton(new TopicPartition(topic, 0));
            consumer.assign(all);
            consumer.seekToBeginning(all);
            return polled(consumer, wanted);
        } finally {
            consumer.close();
        }
    }

    static int polled(KafkaConsumer<byte[], byte[]> consumer, int wanted) throws Exception {
        int count = 0;
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (count < wanted && System.nanoTime() < until) count += poll(consumer).count();
        return count;
    }

    static ConsumerRecords<?, ?> poll(KafkaConsumer<byte[], byte[]> consumer) throws Exception {
        try {
            return (ConsumerRecords<?, ?>) KafkaConsumer.class.getMethod("poll", Duration.class)
                .invoke(consumer, Duration.ofMillis(200));
        } catch (NoSuchMethodException older) {
            return consumer.poll(200);
        }
    }

    static Object group() throws Exception {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("read_uncommitted")) {
            consumer.subscribe(Collections.singletonList(topic));
            int count = polled(consumer, 2 * RECORDS);
            consumer.commitSync();
            return count + " committed " + consumer.position(new TopicPartition(topic, 0));
        }
    }

    // One that is committed with offsets, one that is aborted.
    static Object transactions() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer("transactional.id", "id-" + topic)) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer);
            Map<TopicPartition, OffsetAndMetadata> offsets =
                Collections.singletonMap(new TopicPartition(topic, 0), new OffsetAndMetadata(7));
            try {
                Class<?> metadata = Class.forName("org.apache.kafka.clients.consumer.ConsumerGroupMetadata");
                KafkaProducer.class.getMethod("sendOffsetsToTransaction", Map.class, metadata).invoke(
                    producer, offsets, metadata.getConstructor(String.class).newInstance("group-" + topic));
            } catch (ClassNotFoundException | NoSuchMethodException older) {
                producer.sendOffsetsToTransaction(offsets, "group-" + topic);
            }
            producer.commitTransaction();
            producer.beginTransaction();
            send(producer);
            producer.abortTransaction();
        }
        return read(consumer("read_committed"), 3 * RECORDS);
    }
}
