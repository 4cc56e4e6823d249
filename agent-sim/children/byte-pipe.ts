// A pipe that is read into one buffer, again and again. Node's own pipes take a new buffer for each read, and V8 frees them only every 32 MiB or so.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const BUFFER_BYTES = 65_536;

export interface BytePipe {
  /** The end that a program gets as its standard output. */
  readonly writer: Socket;
  /** Each piece is valid until the next one is asked for. Ends when nobody holds the writer any more, or with `close`. */
  readonly bytes: AsyncIterable<Uint8Array>;
  close(): void;
}

/** The reader of a connection: stands still between one piece and the request for the next. */
const createReader = (path: string) => {
  let piece: Uint8Array | null = null;
  let isOver = false;
  let wake = (): void => undefined;
  const socket = connect({
    path,
    onread: {
      buffer: Buffer.alloc(BUFFER_BYTES),
      callback: (size, buffer) => {
        piece = buffer.subarray(0, size);
        wake();
        return false;
      },
    },
  });
  // A program that is killed may break it.
  socket.on("error", () => undefined);
  socket.on("close", () => {
    isOver = true;
    wake();
  });
  async function* read(): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      if (piece === null && !isOver) {
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        socket.resume();
        await woken;
      }
      const next = piece;
      piece = null;
      if (next === null) return;
      yield next;
    }
  }
  return { socket, read };
};

/** Rejects where no socket can be made, such as on a full disk. */
export const openBytePipe = async (): Promise<BytePipe> => {
  // Nobody else may enter it.
  const folder = await mkdtemp(join(tmpdir(), "mooring-pipe-"));
  const server = createServer({ pauseOnConnect: true });
  try {
    const path = join(folder, "socket");
    await once(server.listen(path), "listening");
    const { socket, read } = createReader(path);
    const connected = once(server, "connection") as Promise<[Socket]>;
    await once(socket, "connect");
    const [writer] = await connected;
    return { writer, bytes: read(), close: () => void socket.destroy() };
  } finally {
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
};
