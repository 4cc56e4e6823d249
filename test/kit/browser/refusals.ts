// Answers of the gateway that refuse one call, as the console's tests put them in the place of the real ones.

export const ERRORS = {
  429: { code: "RATE_LIMIT_EXCEEDED", message: "Too many requests." },
  503: { code: "DATABASE_UNAVAILABLE", message: "The database does not answer." },
} as const;
export type Status = keyof typeof ERRORS;
const appError = (status: Status) => ({ code: ERRORS[status].code, retryable: true, retryAfter: 60, requestId: "req_test", details: {} });
/** As the gateway refuses one call among others of a request. Longer than the client waits by itself. */
export const refusal = (path: string, status: Status) => ({
  error: {
    message: ERRORS[status].message,
    code: -32_000,
    data: { code: status === 429 ? "TOO_MANY_REQUESTS" : "SERVICE_UNAVAILABLE", httpStatus: status, path, app: appError(status) },
  },
});
