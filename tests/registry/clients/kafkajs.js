// KafkaJS's client of schema registries: prints one line for each step that did what it should.
const assert = require("node:assert");
const { SchemaRegistry, SchemaType } = require("@kafkajs/confluent-schema-registry");

async function main() {
  const registry = new SchemaRegistry({ host: process.argv[2] });
  const avro = { type: "record", name: "Order", namespace: "js", fields: [{ name: "n", type: "int" }] };
  const { id } = await registry.register({ type: SchemaType.AVRO, schema: JSON.stringify(avro) }, { subject: "js avro" });
  const data = await registry.encode(id, { n: 7 });
  assert.strictEqual(data.readInt32BE(1), id);
  assert.deepStrictEqual({ ...(await new SchemaRegistry({ host: process.argv[2] }).decode(data)) }, { n: 7 });
  assert.strictEqual(await registry.getLatestSchemaId("js avro"), id);
  assert.strictEqual(await registry.getRegistryId("js avro", 1), id);
  console.log("avro");
  avro.fields.push({ name: "m", type: "int" });
  await assert.rejects(
    registry.register({ type: SchemaType.AVRO, schema: JSON.stringify(avro) }, { subject: "js avro" }),
    /incompatible/,
  );
  console.log("refused");
  const schema = JSON.stringify({ type: "object", properties: { n: { type: "integer" } }, required: ["n"] });
  const json = await registry.register({ type: SchemaType.JSON, schema }, { subject: "js-json" });
  assert.deepStrictEqual(await registry.decode(await registry.encode(json.id, { n: 1 })), { n: 1 });
  await assert.rejects(registry.encode(json.id, { n: "1" }));
  console.log("json");
  const proto = 'syntax = "proto3"; package js; message Thing { string name = 1; }';
  const made = await registry.register({ type: SchemaType.PROTOBUF, schema: proto }, { subject: "js-proto" });
  assert.strictEqual((await registry.decode(await registry.encode(made.id, { name: "x" }))).name, "x");
  console.log("protobuf");
  await assert.rejects(registry.getSchema(999999), /not found/i);
  console.log("ok");
}

main().catch((error) => {
  console.log("failed:", error);
  process.exit(1);
});
