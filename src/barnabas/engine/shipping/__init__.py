"""The package and the libraries that executors need, packed once and shipped to them."""
