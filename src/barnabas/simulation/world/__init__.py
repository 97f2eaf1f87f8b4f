"""The simulated world: loop, time, network, disks, nodes, clients and faults."""
