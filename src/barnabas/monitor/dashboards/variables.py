"""Variables and selectors that dashboards of brokers share. In: nothing. Out: values of `model`."""

from __future__ import annotations

from barnabas.monitor.dashboards.model import Variable

STATE = "<g kafka.server:type=KafkaServer,name=BrokerState>"
BYTES_IN = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec"
JOB = Variable("job", "Job", f"label_values({STATE}, job)")
INSTANCE = Variable("instance", "Node", f'label_values({STATE}{{job=~"$job"}}, instance)')
TOPIC = Variable("topic", "Topic", f'label_values(<c {BYTES_IN}>{{job=~"$job",topic!=""}}, topic)')
NODES = (JOB, INSTANCE)
OF_ALL_TOPICS = '[[S]],topic=""'
OF_TOPICS = '[[J]],topic=~"$topic",topic!=""'
AND_NODES = f" and on (job, instance) {STATE}"  # metrics of processes: other services have them too
