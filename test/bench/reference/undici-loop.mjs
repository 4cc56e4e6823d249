// A bare loop of POST requests with undici: no queue, no signature, no record of anything. Frozen; see frozen.json.
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { Pool } from "undici";

const loop = async ({ url, body, count, connections }) => {
  const { origin, pathname } = new URL(url);
  const pool = new Pool(origin, { connections });
  const [startedAt, usedBefore] = [performance.now(), process.cpuUsage()];
  let left = count;
  const lane = async () => {
    while (left-- > 0) {
      const answer = await pool.request({ path: pathname, method: "POST", headers: { "content-type": "application/json" }, body });
      await answer.body.dump();
      if (answer.statusCode !== 204) throw new Error(`the receiver answered ${answer.statusCode}`);
    }
  };
  await Promise.all(Array.from({ length: connections }, lane));
  const { user, system } = process.cpuUsage(usedBefore);
  const ms = performance.now() - startedAt;
  await pool.close();
  return { ms, cpuMs: (user + system) / 1_000 };
};

const server = createServer(async (request, response) => response.end(JSON.stringify(await loop(await json(request)))));
server.listen(0, "127.0.0.1", () => process.stdout.write(`ready at ${server.address().port}\n`));
