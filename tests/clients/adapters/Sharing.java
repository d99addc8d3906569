// Kafka's share consumers, each with a name by which later commands mean it.

import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

class Sharing {
    static final Map<String, KafkaShareConsumer<byte[], byte[]>> consumers = new HashMap<>();
    static final Map<String, ConsumerRecord<byte[], byte[]>> delivered = new LinkedHashMap<>();

    // share-open NAME TOPIC key=value ... ; share-poll NAME MS: "PLACE DELIVERIES RECORD" for each record, whose
    // place is PARTITION-OFFSET; share-acknowledge NAME with lines "PLACE TYPE"; share-commit NAME: "PARTITION
    // ERROR" for each partition; share-close NAME.
    static void run(List<String> words, Properties settings, List<String> lines) {
        String name = words.get(1);
        var consumer = consumers.get(name);
        switch (words.get(0)) {
            case "share-open" -> {
                var deserializer = new ByteArrayDeserializer();
                consumer = new KafkaShareConsumer<>(settings, deserializer, deserializer);
                consumer.subscribe(List.of(words.get(2)));
                consumers.put(name, consumer);
            }
            case "share-poll" -> {
                for (var record : consumer.poll(Duration.ofMillis(Integer.parseInt(words.get(2))))) {
                    String place = record.partition() + "-" + record.offset();
                    delivered.put(name + place, record);
                    Client.out.println(place + " " + record.deliveryCount().get() + " " + Client.format(record));
                }
            }
            case "share-acknowledge" -> {
                for (String line : lines) {
                    String[] parts = line.split(" ");
                    consumer.acknowledge(delivered.get(name + parts[0]), AcknowledgeType.valueOf(parts[1]));
                }
            }
            case "share-commit" -> consumer.commitSync().forEach((partition, error) ->
                Client.out.println(partition.partition() + " " + error.map(e -> e.getClass().getSimpleName()).orElse("-")));
            case "share-close" -> {
                if (consumers.remove(name) != null) consumer.close();
            }
            default -> throw new IllegalArgumentException(words.get(0));
        }
    }
}
