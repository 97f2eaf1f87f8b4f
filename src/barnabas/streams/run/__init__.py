"""Applications of streams: settings, upgrades, the program that runs a topology, resets."""
