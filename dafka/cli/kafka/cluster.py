"""``dafka kafka cluster``: the brokers, and what they can do."""

from __future__ import annotations

import json

import click

from dafka.cli.kafka.at_cluster import Cluster, at_cluster
from dafka.cli.kafka.output import json_option, show


@click.group(short_help="Brokers, features and disks of a cluster.")
def cluster() -> None:
    """Brokers, features and disks of a cluster."""


@cluster.command()
@json_option
@at_cluster
def describe(as_json: bool, cluster: Cluster) -> None:
    """Show the id of the cluster, its brokers, features and folders of records."""
    with cluster.connect() as connection:
        metadata = connection.call("metadata", None)
        features = connection.call("features")
        folders = connection.call("log_directories", None)
    brokers = [
        {"broker": node, "host": host, "port": port, "controller": node == metadata.controller_id}
        for node, host, port in metadata.brokers
    ]
    levels = [
        {"feature": name, "level": features.levels.get(name, 0), "lowest": lowest, "highest": highest}
        for name, (lowest, highest) in sorted(features.supported.items())
    ]
    disks = [
        {
            "folder": one.path,
            "partitions": len(one.sizes),
            "bytes": sum(one.sizes.values()),
            "free": None if one.usable_bytes < 0 else one.usable_bytes,
        }
        for one in folders
        if one.error is None
    ]
    if as_json:
        whole = {"cluster": metadata.cluster_id, "topics": len(metadata.topics)}
        click.echo(json.dumps({**whole, "brokers": brokers, "features": levels, "folders": disks}))
        return
    click.echo(f"cluster {metadata.cluster_id}: {len(metadata.topics)} topics\n")
    show(brokers, False, ["broker", "host", "port", "controller"])
    click.echo()
    show(levels, False, ["feature", "level", "lowest", "highest"])
    click.echo()
    show(disks, False, ["folder", "partitions", "bytes", "free"])
