// The reference agent as a library. Code outside of this folder imports only this file.

export { sayWhileWaiting } from "../../protocol/kit/waits-at-start.ts";
export { type Agent, createAgent } from "./agent.ts";
export type { AgentEvents, AgentOptions } from "./agent-context.ts";
export { errorOf, type HttpAnswer, hasSucceeded, isUnchanged, NoAnswer, refusal, retryAfterMs } from "./answers.ts";
export { pairByApproval, type ShownCode } from "./approval.ts";
export { createApps } from "./apps.ts";
export { readBootId } from "./boot-id.ts";
export type { Delivered } from "./frames.ts";
export { type CommandHandler, type CommandHandlers, createHandlers, HandlerFailure, InvalidPayload } from "./handlers.ts";
export { callWithRetry, createHttp, type Http, type HttpCall, type RetryOptions } from "./http.ts";
export { AGENT_VERSION, type AgentMachine } from "./machine.ts";
export { packageRoot } from "./package-root.ts";
export { enrollDevice, pairDevice } from "./pairing.ts";
export { LONGEST_WAIT_MS } from "./plan.ts";
export { createRotation } from "./rotation.ts";
export { signer } from "./signing.ts";
export { openFileJournal } from "./state/file-journal.ts";
export { IssuedIdentity, type PairedDevice, toPairedDevice } from "./state/identity.ts";
export { createJournal, createMemoryJournal, type Journal } from "./state/journal.ts";
export { createMemoryKeys, type Keys, openFileKeys } from "./state/keys.ts";
export { lockState, StateInUse } from "./state/state-lock.ts";
export { createDueTimer } from "./timing/due-timer.ts";
export { between, createRandom, jittered, type Random } from "./timing/random.ts";
export { createRunAbort, noop, pause, systemTime, type Time, until } from "./timing/time.ts";
