// A TCP proxy to a gateway that a test can cut, take down and restore, as networks do. It keeps its own address.
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface BreakableWire {
  readonly url: string;
  /** Ends every connection and accepts new ones. */
  cut(): void;
  /** Ends every connection and accepts no new ones until `restore`. */
  down(): Promise<void>;
  /** Accepts connections again, to this gateway from now on. */
  restore(target?: { readonly url: string }): Promise<void>;
  close(): Promise<void>;
}

export const openBreakableWire = async (target: { readonly url: string }): Promise<BreakableWire> => {
  const ends = new Set<Socket>();
  let farPort = Number(new URL(target.url).port);
  const server = createServer((near) => {
    const far = connect(farPort, "127.0.0.1");
    const pair = [near, far];
    for (const end of pair) {
      ends.add(end);
      end
        .on("error", () => undefined)
        .on("close", () => {
          ends.delete(end);
          for (const each of pair) each.destroy();
        });
    }
    near.pipe(far).pipe(near);
  });
  const listen = (port: number): Promise<number> =>
    new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)));
  const port = await listen(0);
  const cut = (): void => {
    for (const end of ends) end.destroy();
  };
  const down = async (): Promise<void> => {
    const closed = server.listening ? new Promise<void>((resolve) => server.close(() => resolve())) : undefined;
    cut();
    await closed;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    cut,
    down,
    restore: async (next) => {
      if (next !== undefined) farPort = Number(new URL(next.url).port);
      await listen(port);
    },
    close: down,
  };
};
