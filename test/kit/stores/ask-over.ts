// Asks one Redis over a connection of its own, with the client that understands every answer.
import { createClient } from "redis";

/** One that is frozen accepts and never answers; one that writes its configuration to a busy disk may take seconds. */
export const askOver = async (url: string, words: readonly string[], withinMs: number): Promise<unknown> => {
  const client = createClient({ url, disableOfflineQueue: true, socket: { connectTimeout: withinMs, reconnectStrategy: false } });
  client.on("error", () => undefined);
  const late = setTimeout(() => client.destroy(), withinMs);
  try {
    await client.connect();
    return await client.sendCommand([...words]);
  } finally {
    clearTimeout(late);
    if (client.isOpen) client.destroy();
  }
};
