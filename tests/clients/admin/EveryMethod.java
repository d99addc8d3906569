// Calls each method of Kafka's Admin, and prints what comes of it: lines "= METHOD CASE WHAT OUTCOME", with tabs.
// Outcomes are the same for every run, but for ids and times; of what fails it is the class of the exception.

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Time;

public class EveryMethod {
    interface Call {
        Object run() throws Exception;
    }

    static final int SECONDS = 60;  // a call that takes longer is an outcome, too
    static final String TOPIC = "admin-topic", OTHER = "admin-other", NONE = "admin-none";
    static final TopicPartition FIRST = new TopicPartition(TOPIC, 0), SECOND = new TopicPartition(TOPIC, 1);
    static final TopicPartition MISSING = new TopicPartition(NONE, 0), BEYOND = new TopicPartition(TOPIC, 7);
    static final String CLASSIC = "admin-classic", MODERN = "admin-modern", SHARED = "admin-shared";
    static final String OPEN = "admin-open";  // a transactional id

    final Admin admin;
    final Properties settings;
    final Set<String> called = new TreeSet<>();
    int node;

    // EveryMethod key=value ... : the settings of all clients. Ends with a line "= METHOD not called" for each method
    // that Admin has and this program does not know.
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        for (String one : arguments) settings.put(one.split("=", 2)[0], one.split("=", 2)[1]);
        try (Admin admin = Admin.create(settings)) {
            EveryMethod every = new EveryMethod(admin, settings);
            every.run();
            every.printForgotten();
        }
        System.exit(0);
    }

    EveryMethod(Admin admin, Properties settings) {
        this.admin = admin;
        this.settings = settings;
    }

    void run() throws Exception {
        cluster();
        topics();
        records();
        settingsOfThings();
        groups();
        transactions();
        rights();
        tidyUp();
    }

    // -- what is called ---------------------------------------------------------------------------------

    void cluster() throws Exception {
        node = admin.describeCluster().nodes().get().iterator().next().id();
        call("describeCluster", "brokers", () -> admin.describeCluster());
        call("describeCluster", "fenced too", () -> admin.describeCluster(
            new DescribeClusterOptions().includeFencedBrokers(true).includeAuthorizedOperations(true)));
        call("describeFeatures", "", () -> admin.describeFeatures());
        call("updateFeatures", "unknown", () -> admin.updateFeatures(
            Map.of("nonsense", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE))));
        call("updateFeatures", "too high", () -> admin.updateFeatures(
            Map.of("share.version", new FeatureUpdate((short) 99, FeatureUpdate.UpgradeType.UPGRADE))));
        call("updateFeatures", "down as an upgrade", () -> admin.updateFeatures(
            Map.of("transaction.version", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE))));
        call("updateFeatures", "only looked at", () -> admin.updateFeatures(
            Map.of("transaction.version", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)),
            new UpdateFeaturesOptions().validateOnly(true)));
        call("describeMetadataQuorum", "", () -> admin.describeMetadataQuorum());
        Uuid directory = new Uuid(1, 2);
        call("addRaftVoter", "", () -> admin.addRaftVoter(
            9, directory, Set.of(new RaftVoterEndpoint("CONTROLLER", "localhost", 9999))));
        call("removeRaftVoter", "", () -> admin.removeRaftVoter(9, directory));
        call("unregisterBroker", "unknown", () -> admin.unregisterBroker(77));
        call("clientInstanceId", "", () -> admin.clientInstanceId(Duration.ofSeconds(SECONDS)));
        KafkaMetric metric = new KafkaMetric(
            new Object(), new MetricName("a", "b", "", Map.of()), (MetricConfig config, long now) -> 1.0,
            new MetricConfig(), Time.SYSTEM);
        call("registerMetricForSubscription", "", () -> {
            admin.registerMetricForSubscription(metric);
            return "done";
        });
        call("unregisterMetricFromSubscription", "", () -> {
            admin.unregisterMetricFromSubscription(metric);
            return "done";
        });
        call("metrics", "", () -> admin.metrics().isEmpty());
    }

    void topics() {
        call("createTopics", "new", () -> admin.createTopics(List.of(
            new NewTopic(TOPIC, 2, (short) 1), new NewTopic(OTHER, Optional.empty(), Optional.empty()))), TOPIC, OTHER);
        call("createTopics", "refused", () -> admin.createTopics(List.of(
            new NewTopic(TOPIC, 2, (short) 1), new NewTopic("a b", 1, (short) 1), new NewTopic("none-1", 0, (short) 1),
            new NewTopic("none-2", 1, (short) 2),
            new NewTopic("none-3", 1, (short) 1).configs(Map.of("no.such", "1")),
            new NewTopic("none-4", 1, (short) 1).configs(Map.of("retention.ms", "often")),
            new NewTopic("none-5", Map.of(0, List.of(77))), new NewTopic("none-6", Map.of(1, List.of(node))))));
        call("createTopics", "only looked at", () -> admin.createTopics(
            List.of(new NewTopic(NONE, 3, (short) 1)), new CreateTopicsOptions().validateOnly(true)), NONE);
        call("listTopics", "", () -> admin.listTopics().names().get().stream().filter(name -> name.startsWith("admin")));
        call("describeTopics", "by name", () -> admin.describeTopics(
            List.of(TOPIC, OTHER, NONE), new DescribeTopicsOptions().includeAuthorizedOperations(true)));
        call("describeTopics", "by id", () -> admin.describeTopics(TopicCollection.ofTopicIds(List.of(new Uuid(1, 2)))));
        call("describeLogDirs", "", () -> admin.describeLogDirs(List.of(node)));
        call("describeReplicaLogDirs", "", () -> admin.describeReplicaLogDirs(
            List.of(new TopicPartitionReplica(TOPIC, 0, node), new TopicPartitionReplica(NONE, 0, node))));
        call("createPartitions", "", () -> admin.createPartitions(Map.of(
            OTHER, NewPartitions.increaseTo(3), TOPIC, NewPartitions.increaseTo(1), NONE, NewPartitions.increaseTo(2))));
        call("createPartitions", "assigned", () -> admin.createPartitions(
            Map.of(TOPIC, NewPartitions.increaseTo(3, List.of(List.of(77))))));
        call("alterReplicaLogDirs", "", () -> admin.alterReplicaLogDirs(
            Map.of(new TopicPartitionReplica(TOPIC, 0, node), "/no/such/folder",
                   new TopicPartitionReplica(NONE, 0, node), "/no/such/folder")));
        call("electLeaders", "preferred", () -> admin.electLeaders(
            ElectionType.PREFERRED, Set.of(FIRST, MISSING, BEYOND)));
        call("electLeaders", "unclean", () -> admin.electLeaders(ElectionType.UNCLEAN, Set.of(FIRST)));
        call("alterPartitionReassignments", "", () -> admin.alterPartitionReassignments(Map.of(
            FIRST, Optional.of(new NewPartitionReassignment(List.of(node))),
            SECOND, Optional.of(new NewPartitionReassignment(List.of(77))), MISSING, Optional.empty())));
        call("alterPartitionReassignments", "cancelled", () -> admin.alterPartitionReassignments(
            Map.of(FIRST, Optional.empty())));
        call("listPartitionReassignments", "", () -> admin.listPartitionReassignments());
        call("listPartitionReassignments", "of one", () -> admin.listPartitionReassignments(Set.of(FIRST)));
        call("listPartitionReassignments", "of none", () -> admin.listPartitionReassignments(Set.of(MISSING)));
    }

    void records() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of())) {
            for (int number = 0; number < 10; number++) {
                byte[] value = ("value " + number).getBytes(StandardCharsets.UTF_8);
                producer.send(new ProducerRecord<>(TOPIC, number % 2, 1000L + number, null, value)).get();
            }
        }
        call("listOffsets", "places", () -> admin.listOffsets(Map.of(
            FIRST, OffsetSpec.latest(), SECOND, OffsetSpec.earliest(), new TopicPartition(OTHER, 0), OffsetSpec.latest())));
        call("listOffsets", "times", () -> admin.listOffsets(
            Map.of(FIRST, OffsetSpec.forTimestamp(1003), SECOND, OffsetSpec.maxTimestamp())));
        call("listOffsets", "beyond", () -> admin.listOffsets(Map.of(SECOND, OffsetSpec.forTimestamp(5000))));
        call("listOffsets", "local", () -> admin.listOffsets(
            Map.of(FIRST, OffsetSpec.earliestLocal(), SECOND, OffsetSpec.latestTiered())));
        call("listOffsets", "not uploaded", () -> admin.listOffsets(Map.of(FIRST, OffsetSpec.earliestPendingUpload())));
        call("deleteRecords", "", () -> admin.deleteRecords(
            Map.of(FIRST, RecordsToDelete.beforeOffset(2), SECOND, RecordsToDelete.beforeOffset(99))).lowWatermarks(),
            FIRST, SECOND);
        call("deleteRecords", "all", () -> admin.deleteRecords(
            Map.of(SECOND, RecordsToDelete.beforeOffset(-1))).lowWatermarks());
        call("listOffsets", "deleted", () -> admin.listOffsets(
            Map.of(FIRST, OffsetSpec.earliest(), SECOND, OffsetSpec.earliest())));
        call("describeProducers", "", () -> admin.describeProducers(List.of(FIRST)).all().get().values().stream()
            .map(found -> found.activeProducers().stream().map(one -> List.of(
                one.producerEpoch(), one.lastSequence(), one.currentTransactionStartOffset())).toList()));
        call("describeProducers", "missing", () -> admin.describeProducers(List.of(BEYOND),
            new DescribeProducersOptions().timeoutMs(2000)));
        call("describeProducers", "of another broker", () -> admin.describeProducers(List.of(FIRST),
            new DescribeProducersOptions().brokerId(77).timeoutMs(2000)));
    }

    void settingsOfThings() {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "admin-settings");
        ConfigResource metrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "admin-metrics");
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "" + node);
        ConfigResource brokers = new ConfigResource(ConfigResource.Type.BROKER, "");
        ConfigResource loggers = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, "" + node);
        ConfigResource missing = new ConfigResource(ConfigResource.Type.TOPIC, NONE);
        for (ConfigResource one : List.of(topic, group, metrics)) {
            call("describeConfigs", one.type().name(), () -> described(one));
        }
        call("describeConfigs", "BROKER", () -> admin.describeConfigs(List.of(broker)).all().get().get(broker).entries()
            .stream().map(one -> one.name() + "|" + one.type() + (one.isReadOnly() ? "|read-only" : "")));
        call("describeConfigs", "all brokers", () -> described(brokers));
        call("describeConfigs", "missing", () -> admin.describeConfigs(List.of(missing)));
        call("describeConfigs", "other broker", () -> admin.describeConfigs(
            List.of(new ConfigResource(ConfigResource.Type.BROKER, "77")),
            new DescribeConfigsOptions().timeoutMs(2000)));
        call("incrementalAlterConfigs", "TOPIC", () -> alter(topic, "retention.ms", "900000000000000", AlterConfigOp.OpType.SET));
        call("incrementalAlterConfigs", "append", () ->
            alter(topic, "cleanup.policy", "compact", AlterConfigOp.OpType.APPEND));
        call("incrementalAlterConfigs", "subtract", () ->
            alter(topic, "cleanup.policy", "compact", AlterConfigOp.OpType.SUBTRACT));
        call("incrementalAlterConfigs", "append to one value", () ->
            alter(topic, "retention.ms", "1", AlterConfigOp.OpType.APPEND));
        call("incrementalAlterConfigs", "deleted", () -> alter(topic, "retention.ms", "", AlterConfigOp.OpType.DELETE));
        call("incrementalAlterConfigs", "unknown", () -> alter(topic, "no.such", "1", AlterConfigOp.OpType.SET));
        call("incrementalAlterConfigs", "of no topic", () -> alter(missing, "retention.ms", "1", AlterConfigOp.OpType.SET));
        call("incrementalAlterConfigs", "not a number", () ->
            alter(topic, "retention.ms", "often", AlterConfigOp.OpType.SET));
        call("incrementalAlterConfigs", "GROUP", () ->
            alter(group, "consumer.session.timeout.ms", "50000", AlterConfigOp.OpType.SET));
        call("incrementalAlterConfigs", "GROUP beyond", () ->
            alter(group, "consumer.session.timeout.ms", "90000000", AlterConfigOp.OpType.SET));
        call("incrementalAlterConfigs", "CLIENT_METRICS", () ->
            alter(metrics, "interval.ms", "60000", AlterConfigOp.OpType.SET));
        call("incrementalAlterConfigs", "BROKER", () ->
            alter(brokers, "log.cleaner.threads", "2", AlterConfigOp.OpType.SET));
        call("incrementalAlterConfigs", "BROKER again", () ->
            alter(brokers, "log.cleaner.threads", "", AlterConfigOp.OpType.DELETE));
        call("incrementalAlterConfigs", "read-only", () ->
            alter(broker, "node.id", "5", AlterConfigOp.OpType.SET));
        call("incrementalAlterConfigs", "BROKER_LOGGER", () -> alter(loggers, "no.such", "INFO", AlterConfigOp.OpType.SET));
        call("listConfigResources", "", () -> resources(admin.listConfigResources()));
        call("listConfigResources", "groups", () -> resources(admin.listConfigResources(
            Set.of(ConfigResource.Type.GROUP), new ListConfigResourcesOptions())));
        call("listClientMetricsResources", "", () -> admin.listClientMetricsResources());
        call("incrementalAlterConfigs", "CLIENT_METRICS deleted", () ->
            alter(metrics, "interval.ms", "", AlterConfigOp.OpType.DELETE));
        call("incrementalAlterConfigs", "GROUP deleted", () ->
            alter(group, "consumer.session.timeout.ms", "", AlterConfigOp.OpType.DELETE));
    }

    void groups() throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(FIRST, new OffsetAndMetadata(3, Optional.of(0), "note"));
        try (KafkaConsumer<byte[], byte[]> classic = consumer(CLASSIC, "classic");
             KafkaConsumer<byte[], byte[]> modern = consumer(MODERN, "consumer");
             KafkaShareConsumer<byte[], byte[]> shared = sharing()) {
            join(classic, modern);
            shared.subscribe(List.of(TOPIC));
            awaitMember(shared);
            classic.commitSync(offsets);
            modern.commitSync(offsets);
            call("listGroups", "", () -> listed(admin.listGroups()));
            call("listGroups", "of consumers", () -> listed(admin.listGroups(ListGroupsOptions.forConsumerGroups())));
            call("listGroups", "that share", () -> listed(admin.listGroups(
                new ListGroupsOptions().withTypes(Set.of(GroupType.SHARE)))));
            call("listGroups", "dead", () -> listed(admin.listGroups(
                new ListGroupsOptions().inGroupStates(Set.of(GroupState.DEAD)))));
            call("listConsumerGroups", "", () -> admin.listConsumerGroups().all().get().stream()
                .filter(one -> one.groupId().startsWith("admin")));
            List<String> all = List.of(CLASSIC, MODERN, SHARED, NONE);
            call("describeConsumerGroups", "", () -> admin.describeConsumerGroups(
                all, new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)));
            call("describeClassicGroups", "", () -> admin.describeClassicGroups(all));
            call("describeShareGroups", "", () -> admin.describeShareGroups(
                all, new DescribeShareGroupsOptions().includeAuthorizedOperations(true)));
            call("describeStreamsGroups", "", () -> admin.describeStreamsGroups(all));
            for (String group : List.of(CLASSIC, MODERN)) {
                call("alterConsumerGroupOffsets", "has members", () -> admin.alterConsumerGroupOffsets(group, offsets), FIRST);
                call("deleteConsumerGroupOffsets", "has members", () ->
                    admin.deleteConsumerGroupOffsets(group, Set.of(FIRST)), FIRST);
                call("deleteConsumerGroups", "has members", () -> admin.deleteConsumerGroups(List.of(group)));
            }
            call("alterShareGroupOffsets", "has members", () ->
                admin.alterShareGroupOffsets(SHARED, Map.of(FIRST, 1L)), FIRST);
            call("deleteShareGroupOffsets", "has members", () ->
                admin.deleteShareGroupOffsets(SHARED, Set.of(TOPIC)), TOPIC);
            call("deleteShareGroups", "has members", () -> admin.deleteShareGroups(List.of(SHARED)));
            call("removeMembersFromConsumerGroup", "unknown", () -> admin.removeMembersFromConsumerGroup(
                CLASSIC, new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("nobody")))));
            call("removeMembersFromConsumerGroup", "all", () -> admin.removeMembersFromConsumerGroup(
                CLASSIC, new RemoveMembersFromConsumerGroupOptions()));
        }
        call("removeMembersFromConsumerGroup", "of no group", () -> admin.removeMembersFromConsumerGroup(
            NONE, new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("nobody")))));
        for (String group : List.of(CLASSIC, MODERN, NONE)) {
            call("listConsumerGroupOffsets", group, () -> admin.listConsumerGroupOffsets(group).all());
            call("listConsumerGroupOffsets", group + " of partitions", () -> admin.listConsumerGroupOffsets(
                Map.of(group, new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(FIRST, SECOND, MISSING)))).all());
            call("alterConsumerGroupOffsets", group, () -> admin.alterConsumerGroupOffsets(group, Map.of(
                FIRST, new OffsetAndMetadata(4), MISSING, new OffsetAndMetadata(1))), FIRST, MISSING);
            call("deleteConsumerGroupOffsets", group, () ->
                admin.deleteConsumerGroupOffsets(group, Set.of(FIRST, SECOND, MISSING)), FIRST, SECOND, MISSING);
        }
        call("alterShareGroupOffsets", "", () -> admin.alterShareGroupOffsets(
            SHARED, Map.of(FIRST, 3L, MISSING, 0L)), FIRST, MISSING);
        call("alterShareGroupOffsets", "of a new group", () ->
            admin.alterShareGroupOffsets("admin-new", Map.of(FIRST, 3L)), FIRST);
        call("alterShareGroupOffsets", "of no topic", () ->
            admin.alterShareGroupOffsets("admin-empty", Map.of(MISSING, 3L)), MISSING);
        call("alterShareGroupOffsets", "of another type", () ->
            admin.alterShareGroupOffsets(MODERN, Map.of(FIRST, 3L)), FIRST);
        call("listGroups", "after offsets", () -> listed(admin.listGroups()));
        for (String group : List.of(SHARED, "admin-new", MODERN, NONE)) {
            call("listShareGroupOffsets", group, () -> admin.listShareGroupOffsets(
                Map.of(group, new ListShareGroupOffsetsSpec())));
            call("listShareGroupOffsets", group + " of partitions", () -> admin.listShareGroupOffsets(
                Map.of(group, new ListShareGroupOffsetsSpec().topicPartitions(List.of(FIRST, SECOND, MISSING)))));
            call("deleteShareGroupOffsets", group, () ->
                admin.deleteShareGroupOffsets(group, Set.of(TOPIC, NONE)), TOPIC, NONE);
        }
        for (String group : List.of(CLASSIC, MODERN, NONE)) {
            call("listStreamsGroupOffsets", group, () -> admin.listStreamsGroupOffsets(
                Map.of(group, new ListStreamsGroupOffsetsSpec())));
            call("alterStreamsGroupOffsets", group, () -> admin.alterStreamsGroupOffsets(
                group, Map.of(FIRST, new OffsetAndMetadata(2))), FIRST);
            call("deleteStreamsGroupOffsets", group, () ->
                admin.deleteStreamsGroupOffsets(group, Set.of(FIRST, MISSING)), FIRST, MISSING);
        }
        List<String> kinds = List.of(CLASSIC, MODERN, SHARED, NONE);
        call("deleteStreamsGroups", "", () -> admin.deleteStreamsGroups(List.of(NONE)));
        call("deleteShareGroups", "", () -> admin.deleteShareGroups(List.of(SHARED, "admin-new", "admin-empty", NONE)));
        call("deleteConsumerGroups", "", () -> admin.deleteConsumerGroups(List.of(CLASSIC, MODERN, NONE)));
        call("describeConsumerGroups", "deleted", () -> admin.describeConsumerGroups(kinds));
    }

    void transactions() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = inTransaction(OPEN)) {
            call("describeTransactions", "open", () -> admin.describeTransactions(List.of(OPEN)).all().get().values()
                .stream().map(one -> List.of(one.state(), one.transactionTimeoutMs(), one.topicPartitions(),
                    one.transactionStartTimeMs().isPresent(), one.coordinatorId() == node)));
            call("describeTransactions", "unknown", () -> admin.describeTransactions(List.of(NONE)));
            call("listTransactions", "", () -> transactions(new ListTransactionsOptions()));
            call("listTransactions", "by state", () -> transactions(
                new ListTransactionsOptions().filterStates(Set.of(TransactionState.COMPLETE_COMMIT))));
            call("listTransactions", "by pattern", () -> transactions(
                new ListTransactionsOptions().filterOnTransactionalIdPattern("admin-o.*")));
            call("listTransactions", "by a wrong pattern", () -> transactions(
                new ListTransactionsOptions().filterOnTransactionalIdPattern("(")));
            call("listTransactions", "by duration", () -> transactions(
                new ListTransactionsOptions().filterOnDuration(1_000_000)));
            call("describeProducers", "with a transaction", () -> admin.describeProducers(List.of(FIRST)).all().get()
                .values().stream().flatMap(found -> found.activeProducers().stream())
                .map(ProducerState::currentTransactionStartOffset).filter(start -> start.isPresent()));
            producer.abortTransaction();
        }
        try (KafkaProducer<byte[], byte[]> producer = inTransaction("admin-hanging")) {
            call("abortTransaction", "of another epoch", () -> admin.abortTransaction(
                new AbortTransactionSpec(FIRST, state().producerId(), (short) 99, 0)));
            call("abortTransaction", "of no partition", () -> admin.abortTransaction(
                new AbortTransactionSpec(MISSING, 1, (short) 0, 0), new AbortTransactionOptions().timeoutMs(2000)));
            call("abortTransaction", "", () -> admin.abortTransaction(new AbortTransactionSpec(
                FIRST, state().producerId(), (short) state().producerEpoch(), state().coordinatorEpoch().orElse(0))));
        }
        try (KafkaProducer<byte[], byte[]> producer = inTransaction("admin-fenced")) {
            call("fenceProducers", "", () -> admin.fenceProducers(List.of("admin-fenced")).all());
            call("fenceProducers", "unknown", () -> admin.fenceProducers(List.of("admin-unknown")).all());
        }
        try (KafkaProducer<byte[], byte[]> producer = inTransaction("admin-terminated")) {
            call("forceTerminateTransaction", "", () -> admin.forceTerminateTransaction("admin-terminated"));
            call("forceTerminateTransaction", "unknown", () -> admin.forceTerminateTransaction("admin-others"));
        }
        call("listTransactions", "ended", () -> transactions(new ListTransactionsOptions()
            .filterStates(Set.of(TransactionState.ONGOING))));
    }

    KafkaProducer<byte[], byte[]> inTransaction(String id) {
        KafkaProducer<byte[], byte[]> producer = producer(Map.of("transactional.id", id));
        producer.initTransactions();
        producer.beginTransaction();
        producer.send(new ProducerRecord<>(TOPIC, 0, null, new byte[3]));
        producer.flush();
        return producer;
    }

    void rights() {
        AclBinding binding = new AclBinding(
            new ResourcePattern(ResourceType.TOPIC, TOPIC, PatternType.LITERAL),
            new AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW));
        call("createAcls", "without an authorizer", () -> admin.createAcls(List.of(binding)));
        call("describeAcls", "without an authorizer", () -> admin.describeAcls(AclBindingFilter.ANY));
        call("deleteAcls", "without an authorizer", () -> admin.deleteAcls(List.of(AclBindingFilter.ANY)));
        ClientQuotaEntity user = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "admin-user"));
        call("alterClientQuotas", "", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
            user, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))));
        call("alterClientQuotas", "unknown key", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
            user, List.of(new ClientQuotaAlteration.Op("nonsense", 1e6))))));
        call("describeClientQuotas", "all", () -> admin.describeClientQuotas(ClientQuotaFilter.all()));
        call("describeClientQuotas", "one", () -> admin.describeClientQuotas(ClientQuotaFilter.containsOnly(
            List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.USER, "admin-user")))));
        call("alterClientQuotas", "removed", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(
            user, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", null))))));
        ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        call("alterUserScramCredentials", "", () -> admin.alterUserScramCredentials(List.of(
            new UserScramCredentialUpsertion("admin-user", info, "secret"))));
        call("alterUserScramCredentials", "refused", () -> admin.alterUserScramCredentials(List.of(
            new UserScramCredentialDeletion("admin-nobody", ScramMechanism.SCRAM_SHA_512),
            new UserScramCredentialUpsertion("admin-few",
                new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 1), "secret"))));
        call("describeUserScramCredentials", "all", () -> admin.describeUserScramCredentials());
        call("describeUserScramCredentials", "some", () -> admin.describeUserScramCredentials(
            List.of("admin-user", "admin-nobody")), "admin-user", "admin-nobody");
        call("alterUserScramCredentials", "removed", () -> admin.alterUserScramCredentials(List.of(
            new UserScramCredentialDeletion("admin-user", ScramMechanism.SCRAM_SHA_256))));
        call("createDelegationToken", "", () -> admin.createDelegationToken());
        call("describeDelegationToken", "", () -> admin.describeDelegationToken());
        call("renewDelegationToken", "", () -> admin.renewDelegationToken(new byte[] {1}));
        call("expireDelegationToken", "", () -> admin.expireDelegationToken(new byte[] {1}));
    }

    void tidyUp() {
        call("deleteTopics", "", () -> admin.deleteTopics(List.of(TOPIC, OTHER, NONE)));
        call("deleteTopics", "by id", () -> admin.deleteTopics(TopicCollection.ofTopicIds(List.of(new Uuid(1, 2)))));
        call("close", "", () -> {
            Admin other = Admin.create(settings);
            other.close(Duration.ofSeconds(1));
            return "done";
        });
    }

    // -- what they need ---------------------------------------------------------------------------------

    Object described(ConfigResource resource) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).entries();
    }

    Object alter(ConfigResource resource, String name, String value, AlterConfigOp.OpType type) {
        return admin.incrementalAlterConfigs(
            Map.of(resource, List.of(new AlterConfigOp(new ConfigEntry(name, value), type))));
    }

    static Object resources(ListConfigResourcesResult result) throws Exception {
        return result.all().get().stream().filter(one -> one.name().startsWith("admin"));
    }

    static Object listed(ListGroupsResult result) throws Exception {
        return result.all().get().stream().filter(one -> one.groupId().startsWith("admin"));
    }

    Object transactions(ListTransactionsOptions options) throws Exception {
        return admin.listTransactions(options).all().get().stream()
            .filter(one -> one.transactionalId().startsWith("admin"))
            .map(one -> one.transactionalId() + " " + one.state());
    }

    ProducerState state() throws Exception {
        return admin.describeProducers(List.of(FIRST)).partitionResult(FIRST).get().activeProducers().stream()
            .filter(one -> one.currentTransactionStartOffset().isPresent()).findFirst().orElseThrow();
    }

    KafkaProducer<byte[], byte[]> producer(Map<String, String> more) {
        Properties all = new Properties();
        all.putAll(settings);
        all.putAll(more);
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    Properties ofGroup(String group) {
        Properties all = new Properties();
        all.putAll(settings);
        all.put("group.id", group);
        all.put("client.id", "client");
        return all;
    }

    KafkaConsumer<byte[], byte[]> consumer(String group, String protocol) {
        Properties all = ofGroup(group);
        all.put("group.protocol", protocol);
        all.put("enable.auto.commit", "false");
        KafkaConsumer<byte[], byte[]> made =
            new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        made.subscribe(List.of(TOPIC));
        return made;
    }

    KafkaShareConsumer<byte[], byte[]> sharing() {
        return new KafkaShareConsumer<>(ofGroup(SHARED), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static void join(Consumer<byte[], byte[]>... members) {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        for (Consumer<byte[], byte[]> one : members) {
            while (one.assignment().size() < 2 && System.nanoTime() < until) one.poll(Duration.ofMillis(50));
        }
    }

    // Until the broker has state of each partition that it reads.
    void awaitMember(KafkaShareConsumer<byte[], byte[]> consumer) throws Exception {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
        while (System.nanoTime() < until) {
            consumer.poll(Duration.ofMillis(100));
            var members = admin.describeShareGroups(List.of(SHARED)).all().get().get(SHARED).members();
            if (members.stream().anyMatch(one -> one.assignment().topicPartitions().size() == 2)) return;
        }
    }

    // -- outcomes ---------------------------------------------------------------------------------------

    void call(String method, String label, Call call, Object... keys) {
        called.add(method);
        Object result;
        try {
            result = call.run();
        } catch (ExecutionException error) {
            print(method, label, "", failed(error.getCause()));
            return;
        } catch (Throwable error) {
            print(method, label, "", failed(error));
            return;
        }
        if (result == null || !result.getClass().getName().startsWith("org.apache.kafka.clients.admin")) {
            print(method, label, "", text(result));
            return;
        }
        Method[] methods = result.getClass().getMethods();
        Arrays.sort(methods, Comparator.comparing(Method::getName));
        for (Method one : methods) {
            if (one.getDeclaringClass() == Object.class || Modifier.isStatic(one.getModifiers())) continue;
            if (one.getParameterCount() == 0) printOutcome(method, label, one, result);
            for (Object key : keys) {
                if (one.getParameterCount() == 1 && one.getParameterTypes()[0].isInstance(key)
                    && !one.getName().equals("equals")) {
                    printOutcome(method, label, one, result, key);
                }
            }
        }
    }

    static void printOutcome(String method, String label, Method accessor, Object result, Object... arguments) {
        String what = accessor.getName() + (arguments.length == 0 ? "" : "(" + text(arguments[0]) + ")");
        try {
            accessor.setAccessible(true);
            print(method, label, what, text(accessor.invoke(result, arguments)));
        } catch (ReflectiveOperationException error) {
            print(method, label, what, failed(error.getCause() == null ? error : error.getCause()));
        }
    }

    static void print(String method, String label, String what, String outcome) {
        System.out.println(String.join("\t", "=", method, label, what, outcome.replaceAll("\\s+", " ")));
    }

    static String failed(Throwable error) {
        return error.getClass().getSimpleName();
    }

    // A value in words, the same for every run: members of sets and maps in order, futures by what comes of them.
    static String text(Object value) {
        if (value instanceof KafkaFuture<?> future) {
            try {
                return text(future.get(SECONDS, TimeUnit.SECONDS));
            } catch (ExecutionException error) {
                return failed(error.getCause());
            } catch (Exception error) {
                return failed(error);
            }
        }
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(one -> key(one.getKey()) + "=" + text(one.getValue()))
                .sorted().collect(Collectors.joining(", ", "{", "}"));
        }
        if (value instanceof java.util.stream.Stream<?> stream) return text(stream.toList());
        if (value instanceof Collection<?> many) {
            return many.stream().map(EveryMethod::text).sorted().collect(Collectors.joining(", ", "[", "]"));
        }
        if (value instanceof Optional<?> maybe) return maybe.map(EveryMethod::text).orElse("-");
        if (value instanceof OptionalLong maybe) return maybe.isPresent() ? "" + maybe.getAsLong() : "-";
        if (value instanceof Throwable error) return failed(error);
        if (value instanceof Node) return "NODE";
        if (value instanceof TopicPartitionInfo one) {
            return one.partition() + " of " + one.replicas().size() + " replicas, " + one.isr().size() + " in sync";
        }
        if (value instanceof ConfigResource one) return one.type() + (one.name().length() > 2 ? " " + one.name() : "");
        if (value instanceof ConfigEntry one) return setting(one);
        boolean isValue = value != null && value.getClass().getName().startsWith("org.apache.kafka.clients.admin.")
            && !(value instanceof Enum) && !(value instanceof Throwable);
        return isValue ? fields(value) : String.valueOf(value);
    }

    static String key(Object key) {
        if (key instanceof Integer) return "NODE";
        if (key instanceof TopicPartitionReplica one) return one.topic() + "-" + one.partition();
        return text(key);
    }

    static String setting(ConfigEntry one) {
        return one.name() + "|" + one.value() + "|" + one.source() + "|" + one.type()
            + (one.isReadOnly() ? "|read-only" : "") + (one.isSensitive() ? "|sensitive" : "");
    }

    static String fields(Object value) {
        List<String> found = new ArrayList<>();
        for (Method one : value.getClass().getMethods()) {
            boolean isField = one.getParameterCount() == 0 && one.getDeclaringClass() != Object.class
                && !Modifier.isStatic(one.getModifiers()) && !one.isAnnotationPresent(Deprecated.class)
                && !Set.of("toString", "hashCode").contains(one.getName());
            if (!isField) continue;
            try {
                one.setAccessible(true);
                found.add(one.getName() + "=" + text(one.invoke(value)));
            } catch (ReflectiveOperationException error) {
                found.add(one.getName() + "=" + failed(error));
            }
        }
        return found.stream().sorted().collect(Collectors.joining(", ", "(", ")"));
    }

    void printForgotten() {
        Set<String> all = Arrays.stream(Admin.class.getMethods())
            .filter(one -> !Modifier.isStatic(one.getModifiers())).map(Method::getName)
            .collect(Collectors.toCollection(TreeSet::new));
        all.removeAll(called);
        all.forEach(name -> print(name, "not called", "", ""));
    }
}
