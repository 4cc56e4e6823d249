-- By hand. Rows of these tables change thousands of times a minute, so by default each is analysed as soon as the daemon comes round: half
-- a second of a processor, and every session plans its statements anew. Their plans do not hang on statistics (server/platform/db.ts).
ALTER TABLE "commands" SET (autovacuum_analyze_threshold = 50000);
ALTER TABLE "command_events" SET (autovacuum_analyze_threshold = 50000);
ALTER TABLE "command_keys" SET (autovacuum_analyze_threshold = 50000);
ALTER TABLE "outbox_events" SET (autovacuum_analyze_threshold = 50000);
ALTER TABLE "devices" SET (autovacuum_analyze_threshold = 50000);
ALTER TABLE "device_presence" SET (autovacuum_analyze_threshold = 50000);
