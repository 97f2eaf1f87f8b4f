"""Endpoints of Confluent's REST API v3: the methods of each path."""

from __future__ import annotations

CLUSTER = "/v3/clusters/{cluster_id}"
GROUP = "/consumer-groups/{consumer_group_id}"

# Paths below a cluster.
METHODS = {
    "": "GET",
    "/acls": "DELETE GET POST",
    "/acls:batch": "POST",
    "/broker-configs": "GET",
    "/broker-configs/{name}": "DELETE GET PUT",
    "/broker-configs:alter": "POST",
    "/brokers": "GET",
    "/brokers/-/configs": "GET",
    "/brokers/{broker_id}": "GET",
    "/brokers/{broker_id}/configs": "GET",
    "/brokers/{broker_id}/configs/{name}": "DELETE GET PUT",
    "/brokers/{broker_id}/configs:alter": "POST",
    "/brokers/{broker_id}/partition-replicas": "GET",
    "/consumer-groups": "GET",
    f"{GROUP}": "GET",
    f"{GROUP}/consumers": "GET",
    f"{GROUP}/consumers/{{consumer_id}}": "GET",
    f"{GROUP}/consumers/{{consumer_id}}/assignments": "GET",
    f"{GROUP}/consumers/{{consumer_id}}/assignments/{{topic_name}}/partitions/{{partition_id}}": "GET",
    f"{GROUP}/lag-summary": "GET",
    f"{GROUP}/lags": "GET",
    f"{GROUP}/lags/{{topic_name}}/partitions/{{partition_id}}": "GET",
    "/topics": "GET POST",
    "/topics/-/configs": "GET",
    "/topics/-/partitions/-/reassignment": "GET",
    "/topics/{topic_name}": "DELETE GET PATCH",
    "/topics/{topic_name}/configs": "GET",
    "/topics/{topic_name}/configs/{name}": "DELETE GET PUT",
    "/topics/{topic_name}/configs:alter": "POST",
    "/topics/{topic_name}/partitions": "GET",
    "/topics/{topic_name}/partitions/-/reassignment": "GET",
    "/topics/{topic_name}/partitions/{partition_id}": "GET",
    "/topics/{topic_name}/partitions/{partition_id}/offset": "GET",
    "/topics/{topic_name}/partitions/{partition_id}/reassignment": "GET",
    "/topics/{topic_name}/partitions/{partition_id}/replicas": "GET",
    "/topics/{topic_name}/partitions/{partition_id}/replicas/{broker_id}": "GET",
    "/topics/{topic_name}/records": "POST",
    "/topics/{topic_name}/records:batch": "POST",
}

ENDPOINTS = {("GET", "/v3/clusters")} | {
    (method, CLUSTER + path) for path, methods in METHODS.items() for method in methods.split()
}
