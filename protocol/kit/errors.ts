// Every error code with its HTTP status and message. A code never changes its meaning; the status decides whether a retry makes sense.
const row = (status: number, message: string) => ({ status, message }) as const;

/** `messageOf` replaces a name in braces by the detail of that name. */
export const ERRORS = {
  VALIDATION_FAILED: row(400, "The request does not match the published schema."),
  MALFORMED_JSON: row(400, "The body is not valid JSON."),
  IDEMPOTENCY_KEY_INVALID: row(400, "An idempotency key is 1 to 255 printable ASCII characters."),
  UNAUTHORIZED: row(401, "Authentication is missing or failed. Send exactly one valid credential."),
  INVALID_SIGNATURE: row(401, "The request signature is not valid."),
  ACTIVATION_TOKEN_INVALID: row(401, "The activation token is wrong, used or expired. Request a new pairing code."),
  ENROLLMENT_TOKEN_INVALID: row(401, "The enrollment token is wrong, revoked or expired. Ask for a new one."),
  FORBIDDEN: row(403, "The credential does not permit this operation."),
  ADMIN_REQUIRED: row(403, "Only administrators of this installation may do this."),
  TENANT_SUSPENDED: row(403, "The tenant is suspended or will be deleted. You can still read, but not change anything."),
  TENANT_LIMIT_REACHED: row(403, "This user already owns the maximum number of tenants."),
  PLAN_LIMIT_EXCEEDED: row(403, "The plan's limit for {resource} is reached. Remove some or change the plan."),
  PRIVILEGE_ESCALATION: row(403, "You cannot grant a permission that you do not hold."),
  REAUTHENTICATION_REQUIRED: row(403, "This needs a recent sign-in. Sign in again and repeat the call."),
  INVITE_EMAIL_MISMATCH: row(403, "The invite is for another email address, or yours is not verified."),
  API_KEY_IP_DENIED: row(403, "This API key does not allow requests from this address."),
  NOT_FOUND: row(404, "This route does not exist."),
  DEVICE_NOT_FOUND: row(404, "Device {deviceId} was not found."),
  TENANT_NOT_FOUND: row(404, "Tenant {tenantId} was not found."),
  DEPLOYMENT_NOT_FOUND: row(404, "Deployment {deploymentId} was not found."),
  COMMAND_NOT_FOUND: row(404, "Command {commandId} was not found."),
  PAIRING_CODE_NOT_FOUND: row(404, "The pairing code is unknown. Check it, or request a new one on the device."),
  ENROLLMENT_NOT_FOUND: row(404, "This device or pairing code has no enrollment."),
  ENROLLMENT_TOKEN_NOT_FOUND: row(404, "Enrollment token {tokenId} was not found."),
  API_KEY_NOT_FOUND: row(404, "API key {keyId} was not found."),
  ROLE_NOT_FOUND: row(404, "Role {roleId} was not found."),
  MEMBER_NOT_FOUND: row(404, "The member was not found."),
  AUDIT_LOG_NOT_FOUND: row(404, "Audit record {auditId} was not found."),
  INVITE_NOT_FOUND: row(404, "The invite does not exist, or its link is no longer valid."),
  NODE_NOT_FOUND: row(404, "There is no live node {nodeId}."),
  FLAG_NOT_FOUND: row(404, "There is no feature flag {key}."),
  JOB_NOT_FOUND: row(404, "There is no background job {name}."),
  ERROR_CODE_NOT_FOUND: row(404, "The error code {code} does not exist."),
  METHOD_NOT_ALLOWED: row(405, "This route does not support this method."),
  VERSION_CONFLICT: row(409, "The resource changed since you read it. Read it again and repeat your change."),
  INVALID_STATE_TRANSITION: row(409, "The state cannot change from {from} to {to}."),
  IDEMPOTENCY_IN_PROGRESS: row(409, "A request with this idempotency key is still running, or its outcome is not known yet. Repeat it in a moment."),
  ALREADY_MEMBER: row(409, "This person is already a member of the tenant."),
  INVITE_ALREADY_PENDING: row(409, "This address already has a pending invite."),
  INVITE_ALREADY_USED: row(409, "The invite has already been answered."),
  INVITE_EXPIRED: row(409, "The invite has expired. Ask for a new one."),
  INVITE_RESENT_TOO_OFTEN: row(409, "The invite was sent again {limit} times. Revoke it and make a new one."),
  TENANT_SLUG_TAKEN: row(409, "The slug {slug} is taken."),
  TENANT_NOT_EMPTY: row(409, "The tenant still has devices or apps. Remove them, or send `force=true`."),
  ROLE_IN_USE: row(409, "Members still have this role. Give them another one first."),
  ROLE_IMMUTABLE: row(409, "Built-in roles cannot be changed or deleted."),
  ROLE_NAME_RESERVED: row(409, "The name {name} belongs to another role."),
  LAST_OWNER: row(409, "A tenant always keeps an owner without limits. Make another member the owner first."),
  PLAN_CHANGE_REQUIRES_BILLING: row(409, "The plan can only be changed through billing."),
  PLAN_UNCHANGED: row(409, "The tenant already has this plan."),
  PLAN_DOWNGRADE_BLOCKED: row(409, "The tenant has more hosts or members than this plan allows. Remove some first."),
  NO_ACTIVE_SUBSCRIPTION: row(409, "The tenant has no active subscription."),
  BILLING_NOT_CONFIGURED: row(409, "The payment provider is not set up for this. Ask the people who run this installation."),
  PAIRING_CODE_EXPIRED: row(409, "The pairing code has expired. Request a new one on the device."),
  PAIRING_ALREADY_ACTIVATED: row(409, "The pairing code has already been used. Request a new one on the device."),
  PAIRING_REJECTED: row(409, "The machine behind this pairing code was rejected. Request a new code on the device."),
  ENROLLMENT_TOKEN_EXHAUSTED: row(409, "The enrollment token has reached its maximum number of uses."),
  DEVICE_ALREADY_PAIRED: row(409, "This machine is already paired. Allow or confirm the replacement of its identity first."),
  DUPLICATE_IDENTITY: row(409, "Another running agent uses this device's identity."),
  DEVICE_OFFLINE: row(409, "Device {deviceId} is offline."),
  ROTATION_IN_PROGRESS: row(409, "The device has not completed its previous secret rotation."),
  COMMAND_ALREADY_FINAL: row(409, "Command {commandId} has already ended as {status}."),
  PAYLOAD_TOO_LARGE: row(413, "The body is larger than {maxBytes} bytes."),
  URI_TOO_LONG: row(414, "The URL is longer than {maxBytes} bytes."),
  UNSUPPORTED_MEDIA_TYPE: row(415, "The body must be application/json."),
  IDEMPOTENCY_KEY_REUSED: row(422, "This idempotency key was already used with a different request."),
  RETURN_URL_NOT_ALLOWED: row(422, "The return URL does not name an allowed host."),
  PERMISSION_UNKNOWN: row(422, "There is no such permission. `GET /v1/permissions` lists them all."),
  COMMAND_TYPE_UNKNOWN: row(422, "The command type {type} is unknown."),
  COMMAND_PAYLOAD_INVALID: row(422, "The payload does not match the command type."),
  PROTOCOL_UNSUPPORTED: row(426, "This URL accepts only WebSocket upgrades of version 13 with the subprotocol mooring-agent.v1."),
  RATE_LIMIT_EXCEEDED: row(429, "Too many requests."),
  COMMAND_QUEUE_FULL: row(429, "The command queue of device {deviceId} is full. Wait until commands have ended, or purge it."),
  STREAM_LIMIT_REACHED: row(429, "Too many live streams are open. Close one first."),
  INTERNAL_ERROR: row(500, "Something went wrong on the server."),
  SERVICE_UNAVAILABLE: row(503, "The service is temporarily unavailable."),
  DATABASE_BUSY: row(503, "The database did not answer in time: it is overloaded, or another transaction holds a lock that this request needs."),
  DATABASE_UNAVAILABLE: row(503, "The database is temporarily unreachable."),
  IDENTITY_PROVIDER_UNAVAILABLE: row(503, "The identity provider is temporarily unreachable."),
  NODE_DRAINING: row(503, "This node is shutting down. Connect again to reach another node."),
} as const;

export type ErrorCode = keyof typeof ERRORS;
export const ERROR_CODES = Object.keys(ERRORS) as readonly ErrorCode[];

/** JSON-safe facts about one failure; never a secret or a stack trace. */
export type Details = Readonly<Record<string, unknown>>;

/** The interface's rule: a client may retry 5xx and 429, but no other 4xx. */
export const isRetryable = (code: ErrorCode): boolean => ERRORS[code].status >= 500 || ERRORS[code].status === 429;

/** The message with the details filled in. */
export const messageOf = (code: ErrorCode, details: Details = {}): string =>
  ERRORS[code].message.replace(/\{(\w+)\}/g, (_, name: string) => String(details[name] ?? name));
