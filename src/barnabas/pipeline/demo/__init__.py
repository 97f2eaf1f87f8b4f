"""The demo: a shop's orders, payments and page views, everything that a pipeline meets, in one command."""
