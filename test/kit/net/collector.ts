// An OpenTelemetry collector for tests: accepts OTLP over HTTP in protobuf, as real ones do, and remembers every span.
import { once } from "node:events";
import { createServer } from "node:http";

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly failed: boolean;
  readonly service: string;
}

/** Field numbers with their values: bytes, or a number. */
type Fields = readonly (readonly [field: number, value: Buffer | bigint])[];

const varint = (bytes: Buffer, at: number): readonly [value: bigint, next: number] => {
  let value = 0n;
  for (let shift = 0n, next = at; ; shift += 7n) {
    const byte = bytes.readUInt8(next);
    next += 1;
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return [value, next];
  }
};

const fieldsOf = (bytes: Buffer): Fields => {
  const fields: [number, Buffer | bigint][] = [];
  for (let at = 0; at < bytes.length; ) {
    const [tag, start] = varint(bytes, at);
    const [field, type] = [Number(tag >> 3n), Number(tag & 7n)];
    if (type === 0) {
      const [value, next] = varint(bytes, start);
      fields.push([field, value]);
      at = next;
    } else if (type === 2) {
      const [length, begin] = varint(bytes, start);
      at = begin + Number(length);
      fields.push([field, bytes.subarray(begin, at)]);
    } else {
      at = start + (type === 1 ? 8 : 4);
      fields.push([field, type === 1 ? bytes.readBigUInt64LE(start) : BigInt(bytes.readUInt32LE(start))]);
    }
  }
  return fields;
};

const parts = (fields: Fields, wanted: number): readonly Buffer[] =>
  fields.flatMap(([field, value]) => (field === wanted && typeof value !== "bigint" ? [value] : []));
const whole = (fields: Fields, wanted: number): bigint => {
  const found = fields.find(([field]) => field === wanted)?.[1];
  return typeof found === "bigint" ? found : 0n;
};
const hex = (fields: Fields, wanted: number): string => parts(fields, wanted)[0]?.toString("hex") ?? "";
const text = (fields: Fields, wanted: number): string => parts(fields, wanted)[0]?.toString("utf8") ?? "";
/** Strings and numbers, all as strings. */
const attributesOf = (pairs: readonly Buffer[]): Record<string, string> =>
  Object.fromEntries(
    pairs.map(fieldsOf).map((pair) => {
      const value = fieldsOf(parts(pair, 2)[0] ?? Buffer.alloc(0));
      return [text(pair, 1), text(value, 1) || String(whole(value, 3))];
    }),
  );

const toSpan = (fields: Fields, service: string): CollectedSpan => ({
  traceId: hex(fields, 1),
  spanId: hex(fields, 2),
  parentSpanId: hex(fields, 4),
  name: text(fields, 5),
  startMs: Number(whole(fields, 7) / 1_000_000n),
  endMs: Number(whole(fields, 8) / 1_000_000n),
  attributes: attributesOf(parts(fields, 9)),
  links: parts(fields, 13).map((link) => ({ traceId: hex(fieldsOf(link), 1), spanId: hex(fieldsOf(link), 2) })),
  failed: parts(fields, 15).some((status) => whole(fieldsOf(status), 3) === 2n),
  service,
});

/** ExportTraceServiceRequest → resource spans → scope spans → spans. */
const spansOf = (body: Buffer): readonly CollectedSpan[] =>
  parts(fieldsOf(body), 1).flatMap((resourceSpans) => {
    const fields = fieldsOf(resourceSpans);
    const resource = attributesOf(parts(fieldsOf(parts(fields, 1)[0] ?? Buffer.alloc(0)), 1));
    return parts(fields, 2).flatMap((scope) => parts(fieldsOf(scope), 2).map((span) => toSpan(fieldsOf(span), resource["service.name"] ?? "")));
  });

/** A silent one accepts connections and never answers. */
export const startCollector = async ({ silent = false, port = 0 }: { readonly silent?: boolean; readonly port?: number } = {}) => {
  const spans: CollectedSpan[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (silent) return;
      if (request.method !== "POST" || request.url !== "/v1/traces") return response.writeHead(404).end();
      spans.push(...spansOf(Buffer.concat(chunks)));
      return response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    });
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port was given");
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    spans: spans as readonly CollectedSpan[],
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};
