// Fastify with one route and its serialisation schema. Frozen; see frozen.json.
import fastify from "fastify";

const app = fastify();
const startedAt = performance.now();
const schema = { response: { 200: { type: "object", properties: { alive: { type: "boolean" }, timestamp: { type: "string" }, uptime: { type: "number" } } } } };
app.get("/live", { schema }, async () => ({ alive: true, timestamp: new Date().toISOString(), uptime: performance.now() - startedAt }));
await app.listen({ host: "127.0.0.1", port: 0, backlog: 4_096 });
process.stdout.write(`ready at ${app.server.address().port}\n`);
