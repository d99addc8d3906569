// Counts words with Kafka Streams: WordCount INPUT OUTPUT key=value ... , until the end of its input.
// It says "state NAME" for each state that it reaches, and ends with status 1 if a thread of it fails.

import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

public class WordCount {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (String pair : Arrays.asList(arguments).subList(2, arguments.length)) {
            int equals = pair.indexOf('=');
            settings.put(pair.substring(0, equals), pair.substring(equals + 1));
        }
        var strings = Serdes.String();
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[0], Consumed.with(strings, strings))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", strings, strings))
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(arguments[1], Produced.with(strings, strings));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> {
            say("failed " + error);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> say("state " + now));
        streams.start();
        while (System.in.read() >= 0) { }
        streams.close(Duration.ofSeconds(60));
        say("closed");
        System.exit(0);
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
