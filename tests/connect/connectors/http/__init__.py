"""The HTTP connectors."""
