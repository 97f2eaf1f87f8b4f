"""One module an API; `barnabas.broker.api.routes.handles` registers what each declares."""
