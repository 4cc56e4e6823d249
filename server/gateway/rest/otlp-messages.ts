// The messages of OpenTelemetry's trace/v1 as far as we read them. Text is declared as bytes, and spans and nested values stay encoded until somebody
// reads them: so one broken text, span or value costs itself and not its neighbours.
import protobuf from "protobufjs/light.js";

type Fields = Readonly<Record<string, readonly [id: number, type: string, rule?: "repeated"]>>;

const MESSAGES: Readonly<Record<string, Fields>> = {
  Request: { resourceSpans: [1, "ResourceSpans", "repeated"] },
  ResourceSpans: { resource: [1, "Resource"], scopeSpans: [2, "ScopeSpans", "repeated"] },
  Resource: { attributes: [1, "KeyValue", "repeated"] },
  ScopeSpans: { scope: [1, "Scope"], spans: [2, "bytes", "repeated"] },
  Scope: { name: [1, "bytes"], version: [2, "bytes"] },
  Span: {
    traceId: [1, "bytes"],
    spanId: [2, "bytes"],
    parentSpanId: [4, "bytes"],
    name: [5, "bytes"],
    kind: [6, "int32"],
    startTimeUnixNano: [7, "fixed64"],
    endTimeUnixNano: [8, "fixed64"],
    attributes: [9, "KeyValue", "repeated"],
    events: [11, "Event", "repeated"],
    links: [13, "Link", "repeated"],
    status: [15, "Status"],
  },
  Event: { timeUnixNano: [1, "fixed64"], name: [2, "bytes"], attributes: [3, "KeyValue", "repeated"] },
  Link: { traceId: [1, "bytes"], spanId: [2, "bytes"], attributes: [4, "KeyValue", "repeated"] },
  Status: { message: [2, "bytes"], code: [3, "int32"] },
  KeyValue: { key: [1, "bytes"], value: [2, "AnyValue"] },
  AnyValue: {
    stringValue: [1, "bytes"],
    boolValue: [2, "bool"],
    intValue: [3, "int64"],
    doubleValue: [4, "double"],
    arrayValue: [5, "bytes"],
    kvlistValue: [6, "bytes"],
    bytesValue: [7, "bytes"],
  },
  ArrayValue: { values: [1, "AnyValue", "repeated"] },
  KeyValueList: { values: [1, "KeyValue", "repeated"] },
  Response: { partialSuccess: [1, "PartialSuccess"] },
  PartialSuccess: { rejectedSpans: [1, "int64"], errorMessage: [2, "string"] },
  /** google.rpc.Status */
  RpcStatus: { code: [1, "int32"], message: [2, "string"] },
};

const root = protobuf.Root.fromJSON({
  nested: Object.fromEntries(
    Object.entries(MESSAGES).map(([name, fields]) => [
      name,
      {
        fields: Object.fromEntries(Object.entries(fields).map(([field, [id, type, rule]]) => [field, { id, type, ...(rule === undefined ? {} : { rule }) }])),
      },
    ]),
  ),
});

/** Fields that the bytes do not have are absent as own properties. */
export type Message = Readonly<Record<string, unknown>>;

// as: the library knows a message only as an object
export const decodeOtlp = (name: string, bytes: Uint8Array): Message => root.lookupType(name).decode(bytes) as unknown as Message;
export const encodeOtlp = (name: string, message: Message): Uint8Array => root.lookupType(name).encode(root.lookupType(name).fromObject(message)).finish();
