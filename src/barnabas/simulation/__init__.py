"""Real nodes in a world of one seed: virtual time, network and disks in memory, faults, histories, checks."""
