// Every error code there is: its HTTP status and its sentence. One row is one code, forever; retryable is read off the status.
const row = (status: number, message: string) => ({ status, message }) as const;

/** Messages may name a detail in braces; the renderer fills it in. Source: interface section 7, control-plane.md 6. */
export const ERRORS = {
  VALIDATION_FAILED: row(400, "The request does not match the published schema."),
  MALFORMED_JSON: row(400, "The body is not valid JSON."),
  IDEMPOTENCY_KEY_INVALID: row(400, "An idempotency key is 1 to 255 printable ASCII characters."),
  UNAUTHORIZED: row(401, "Authentication is required or has failed."),
  INVALID_SIGNATURE: row(401, "The request signature is not valid."),
  ACTIVATION_TOKEN_INVALID: row(401, "The activation token is wrong, used or expired."),
  ENROLLMENT_TOKEN_INVALID: row(401, "The enrollment token is wrong, revoked or expired."),
  FORBIDDEN: row(403, "The credential does not permit this operation."),
  ADMIN_REQUIRED: row(403, "Only those who run the installation may do this."),
  TENANT_SUSPENDED: row(403, "The tenant is suspended; reading stays possible."),
  TENANT_LIMIT_REACHED: row(403, "This user owns as many tenants as allowed."),
  PLAN_LIMIT_EXCEEDED: row(403, "The plan's limit for {resource} is reached."),
  PRIVILEGE_ESCALATION: row(403, "Nobody can grant a permission they do not hold."),
  API_KEY_IP_DENIED: row(403, "This API key may not be used from this address."),
  NOT_FOUND: row(404, "There is no such route."),
  DEVICE_NOT_FOUND: row(404, "Device {deviceId} was not found."),
  TENANT_NOT_FOUND: row(404, "Tenant {tenantId} was not found."),
  DEPLOYMENT_NOT_FOUND: row(404, "Deployment {deploymentId} was not found."),
  COMMAND_NOT_FOUND: row(404, "Command {commandId} was not found."),
  PAIRING_CODE_NOT_FOUND: row(404, "The pairing code is unknown."),
  ENROLLMENT_NOT_FOUND: row(404, "There is no enrollment to report on."),
  ENROLLMENT_TOKEN_NOT_FOUND: row(404, "Enrollment token {tokenId} was not found."),
  API_KEY_NOT_FOUND: row(404, "API key {keyId} was not found."),
  NODE_NOT_FOUND: row(404, "There is no living node {nodeId}."),
  ERROR_CODE_NOT_FOUND: row(404, "There is no error code {code}."),
  METHOD_NOT_ALLOWED: row(405, "The route exists, but not for this method."),
  VERSION_CONFLICT: row(409, "The resource has changed since it was read."),
  INVALID_STATE_TRANSITION: row(409, "The state {from} does not lead to {to}."),
  IDEMPOTENCY_IN_PROGRESS: row(409, "A request with this idempotency key is still running, or its outcome is not known yet. Repeat it in a moment."),
  TENANT_SLUG_TAKEN: row(409, "The slug {slug} is taken."),
  PLAN_CHANGE_REQUIRES_BILLING: row(409, "The plan is changed through billing."),
  PAIRING_CODE_EXPIRED: row(409, "The pairing code has expired; start again on the device."),
  PAIRING_ALREADY_ACTIVATED: row(409, "The pairing code has been used."),
  ENROLLMENT_TOKEN_EXHAUSTED: row(409, "The enrollment token has been used as often as allowed."),
  DEVICE_ALREADY_PAIRED: row(409, "The machine is paired already; replacing its identity must be allowed or confirmed first."),
  DUPLICATE_IDENTITY: row(409, "Another living agent uses this device's identity."),
  DEVICE_OFFLINE: row(409, "Device {deviceId} is offline."),
  ROTATION_IN_PROGRESS: row(409, "A secret rotation is still waiting for the device."),
  COMMAND_ALREADY_FINAL: row(409, "Command {commandId} has already ended as {status}."),
  PAYLOAD_TOO_LARGE: row(413, "The body is larger than {maxBytes} bytes."),
  URI_TOO_LONG: row(414, "The address is longer than {maxBytes} bytes."),
  UNSUPPORTED_MEDIA_TYPE: row(415, "The body must be application/json."),
  IDEMPOTENCY_KEY_REUSED: row(422, "This idempotency key was used with another request."),
  RETURN_URL_NOT_ALLOWED: row(422, "return_to does not lead to an allowed place."),
  COMMAND_TYPE_UNKNOWN: row(422, "The command type {type} is not known."),
  COMMAND_PAYLOAD_INVALID: row(422, "The payload does not fit the command type."),
  PROTOCOL_UNSUPPORTED: row(426, "This address takes WebSocket upgrades only: version 13, subprotocol mooring-agent.v1."),
  RATE_LIMIT_EXCEEDED: row(429, "Too many requests."),
  COMMAND_QUEUE_FULL: row(429, "The command queue of device {deviceId} is full."),
  STREAM_LIMIT_REACHED: row(429, "Too many live streams are open; close one first."),
  INTERNAL_ERROR: row(500, "Something went wrong on our side."),
  SERVICE_UNAVAILABLE: row(503, "The service cannot answer right now."),
  DATABASE_BUSY: row(503, "The database did not answer in time; it is overloaded, or other work holds what this request needs."),
  DATABASE_UNAVAILABLE: row(503, "The database cannot be reached right now."),
  IDENTITY_PROVIDER_UNAVAILABLE: row(503, "The identity provider cannot be reached right now."),
  NODE_DRAINING: row(503, "This node is shutting down; connect again."),
} as const;

export type ErrorCode = keyof typeof ERRORS;
export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[];

/** JSON-safe facts about one failure: never a secret, never a stack. */
export type Details = Readonly<Record<string, unknown>>;

/** The interface's own rule, computed in one place: 5xx and 429 are worth a retry, every other 4xx is not. */
export const isRetryable = (code: ErrorCode): boolean => ERRORS[code].status >= 500 || ERRORS[code].status === 429;

/** The sentence for people, with the details filled in. */
export const messageOf = (code: ErrorCode, details: Details = {}): string =>
  ERRORS[code].message.replace(/\{(\w+)\}/g, (_, name: string) => String(details[name] ?? name));
