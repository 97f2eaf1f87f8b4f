"""The page `/docs`: shows a service's `openapi.json` in a browser and tries its endpoints.

In: the title of a service. Out: one HTML page that loads nothing from other hosts. The document's texts reach
the page as text, never as markup. Does not know: which endpoints there are.
"""

from __future__ import annotations

import html

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
input, textarea, select { font: 13px ui-monospace, monospace; width: 100%; box-sizing: border-box; }
textarea { height: 8rem; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .3rem 0; }
summary { padding: .4rem .7rem; cursor: pointer; }
summary code { font-weight: 600; } summary span { opacity: .75; margin-left: .7rem; }
.method { display: inline-block; width: 4.5rem; font: 700 12px ui-monospace, monospace; }
.GET { color: #1a7f37; } .POST { color: #0969da; } .PUT, .PATCH { color: #9a6700; }
.DELETE { color: #cf222e; }
.body { padding: .2rem .9rem .9rem; border-top: 1px solid var(--line); }
table { border-collapse: collapse; width: 100%; } td { padding: .2rem .4rem; vertical-align: top; }
td:first-child { white-space: nowrap; font-family: ui-monospace, monospace; width: 14rem; }
pre { background: var(--soft); padding: .6rem; overflow: auto; max-height: 24rem; border-radius: 6px; }
button { margin: .5rem 0; padding: .3rem 1rem; }
"""

SCRIPT = """
"use strict";
const make = (name, text, properties) =>
  Object.assign(document.createElement(name), text === undefined ? {} : { textContent: text }, properties);
let api;
const follow = schema => schema?.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema;
function sample(schema, depth = 0) {
  schema = follow(schema) || {};
  if (depth > 6) return null;
  if (schema.enum) return schema.enum[0];
  if (schema.default !== undefined) return schema.default;
  if (schema.anyOf) return sample(schema.anyOf[0], depth + 1);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object") {
    const found = {};
    for (const [name, each] of Object.entries(schema.properties || {})) found[name] = sample(each, depth + 1);
    return found;
  }
  if (type === "array") return [sample(schema.items, depth + 1)];
  return { string: "", integer: 0, number: 0, boolean: false }[type] ?? null;
}
const typeOf = schema => {
  const found = follow(schema) || {};
  if (found.enum) return found.enum.join(" | ");
  return [found.format || found.type || "any"].flat().join(" or ");
};
function show(path, method, operation) {
  const box = make("details"), head = make("summary");
  const label = make("b", method, { className: "method " + method });
  head.append(label, make("code", path), make("span", operation.summary));
  box.append(head);
  box.addEventListener("toggle", () => {
    if (box.open && box.children.length === 1) box.append(form(path, method, operation));
  });
  box.dataset.text = (method + " " + path + " " + operation.summary).toLowerCase();
  return box;
}
function form(path, method, operation) {
  const body = make("div", undefined, { className: "body" }), inputs = [];
  const table = make("table");
  for (const each of operation.parameters || []) {
    const row = make("tr"), cell = make("td");
    const input = make("input", undefined, { placeholder: typeOf(each.schema) });
    inputs.push([each, input]);
    cell.append(input, each.description || "");
    row.append(make("td", each.name + (each.required ? " *" : "")), cell);
    table.append(row);
  }
  body.append(table);
  let text, kind;
  if (operation.requestBody) {
    const kinds = Object.keys(operation.requestBody.content);
    kind = make("select");
    kinds.forEach(each => kind.append(make("option", each)));
    text = make("textarea");
    text.value = JSON.stringify(sample(operation.requestBody.content[kinds[0]].schema), null, 2);
    body.append(make("div", "Body"), kind, text);
  }
  const button = make("button", "Send"), output = make("pre", "", { hidden: true });
  button.onclick = async () => {
    let url = path;
    const query = new URLSearchParams(), headers = {};
    for (const [each, input] of inputs) {
      if (each.in === "path") url = url.replace("{" + each.name + "}", encodeURIComponent(input.value));
      else if (input.value && each.in === "query") query.append(each.name, input.value);
      else if (input.value && each.in === "header") headers[each.name] = input.value;
    }
    if (text) headers["Content-Type"] = kind.value;
    output.hidden = false;
    output.textContent = "…";
    try {
      const wanted = url + (query.size ? "?" + query : "");
      const answer = await fetch(wanted, { method, headers, body: text && text.value });
      let shown = await answer.text();
      try { shown = JSON.stringify(JSON.parse(shown), null, 2); } catch (error) { /* a stream, or no JSON */ }
      output.textContent = answer.status + " " + answer.statusText + "\\n" + shown;
    } catch (error) { output.textContent = String(error); }
  };
  body.append(button, output);
  const answers = make("table");
  for (const [status, each] of Object.entries(operation.responses)) {
    const row = make("tr"), cell = make("td", each.description);
    const content = each.content && Object.values(each.content)[0];
    if (content && status < "300")
      cell.append(make("pre", JSON.stringify(sample(content.schema), null, 2)));
    row.append(make("td", status), cell);
    answers.append(row);
  }
  body.append(make("div", "Responses"), answers);
  return body;
}
fetch("openapi.json").then(answer => answer.json()).then(found => {
  api = found;
  document.getElementById("about").textContent = api.info.description || "";
  const list = document.getElementById("list");
  for (const tag of api.tags) {
    const part = make("section");
    part.append(make("h2", tag.name));
    for (const [path, methods] of Object.entries(api.paths))
      for (const [method, operation] of Object.entries(methods))
        if (operation.tags.includes(tag.name)) part.append(show(path, method.toUpperCase(), operation));
    list.append(part);
  }
}).catch(error => { document.getElementById("about").textContent = String(error); });
document.getElementById("find").oninput = event => {
  const wanted = event.target.value.toLowerCase();
  for (const each of document.querySelectorAll("details")) each.hidden = !each.dataset.text.includes(wanted);
};
"""


def page(title: str) -> str:
    """The page. It asks for `openapi.json` beside itself."""
    name = html.escape(title)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
        f'<body><h1>{name}</h1><p id="about"></p><input id="find" placeholder="Find an endpoint">'
        f'<div id="list"></div><script>{SCRIPT}</script></body></html>'
    )
