"""One module an API; `barnabas.broker.routes.handles` registers what each declares."""
