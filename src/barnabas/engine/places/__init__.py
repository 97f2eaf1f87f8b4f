"""Small files beside the data: in a folder, or in an object store behind a URL."""
