// In all tests a transaction that asks for a second session fails.
import { refuseNestedSessions } from "../../../server/platform/database/nested-sessions.ts";

refuseNestedSessions();
