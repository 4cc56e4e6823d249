-- By hand. ANALYZE reads 300 rows for each step of the finest column: by default 30,000 rows, whose payloads and texts it sorts, which holds
-- a processor for a third of a second and delays every command of that moment. Plans of these tables do not hang on such detail.
DO $$
DECLARE hot record;
BEGIN
  FOR hot IN
    SELECT a.attrelid::regclass AS table_name, a.attname AS column_name, a.atttypid = 'jsonb'::regtype AS is_document
    FROM pg_attribute a
    WHERE a.attrelid IN ('commands'::regclass, 'command_events'::regclass, 'command_keys'::regclass, 'outbox_events'::regclass, 'devices'::regclass, 'device_presence'::regclass)
      AND a.attnum > 0 AND NOT a.attisdropped
  LOOP
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s', hot.table_name, hot.column_name, CASE WHEN hot.is_document THEN 0 ELSE 10 END);
  END LOOP;
END $$;
