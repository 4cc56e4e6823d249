-- CreateTable
CREATE TABLE "audit_logs" (
    "audit_id" TEXT NOT NULL,
    "tenant_id" TEXT NOT NULL,
    "sequence" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "actor_type" TEXT NOT NULL,
    "actor_id" TEXT NOT NULL,
    "actor_email" TEXT,
    "ip" TEXT,
    "user_agent" TEXT,
    "action" TEXT NOT NULL,
    "resource_type" TEXT NOT NULL,
    "resource_id" TEXT,
    "outcome" TEXT NOT NULL,
    "code" TEXT,
    "request_id" TEXT,
    "changes" JSONB NOT NULL,
    "omitted" INTEGER NOT NULL,
    "hash" BYTEA NOT NULL,
    "previous_hash" BYTEA NOT NULL,

    CONSTRAINT "audit_logs_pkey" PRIMARY KEY ("audit_id")
);

-- CreateTable
CREATE TABLE "audit_chains" (
    "tenant_id" TEXT NOT NULL,
    "sequence" BIGINT NOT NULL DEFAULT 1,
    "hash" BYTEA NOT NULL DEFAULT '\x',
    "anchor_sequence" BIGINT NOT NULL DEFAULT 0,
    "anchor_hash" BYTEA NOT NULL DEFAULT '\x',
    "signature" BYTEA NOT NULL DEFAULT '\x',

    CONSTRAINT "audit_chains_pkey" PRIMARY KEY ("tenant_id")
);

-- CreateIndex
CREATE INDEX "audit_logs_tenant_id_at_idx" ON "audit_logs"("tenant_id", "at");

-- CreateIndex
CREATE INDEX "audit_logs_tenant_id_actor_id_sequence_idx" ON "audit_logs"("tenant_id", "actor_id", "sequence");

-- CreateIndex
CREATE INDEX "audit_logs_tenant_id_resource_id_sequence_idx" ON "audit_logs"("tenant_id", "resource_id", "sequence");

-- CreateIndex
CREATE UNIQUE INDEX "audit_logs_tenant_id_sequence_key" ON "audit_logs"("tenant_id", "sequence");

-- Keeps what changes in a transaction that has asked for it, for its audit record: a row per line of JSON, with the columns that differ. It sees
-- every statement, whoever wrote it, and the row exactly as it was. The first 50 rows are kept, the others counted.
CREATE FUNCTION audit_capture() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  before jsonb;
  after jsonb;
  whole jsonb;
  seen integer := coalesce(nullif(current_setting('mooring.audit_seen', true), ''), '0')::integer + 1;
BEGIN
  IF seen > 50 THEN
    PERFORM set_config('mooring.audit_seen', seen::text, true);
    RETURN NULL;
  END IF;
  before := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
  after := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
  whole := coalesce(after, before);
  IF TG_OP = 'UPDATE' THEN
    SELECT jsonb_object_agg(o.key, o.value), jsonb_object_agg(o.key, whole -> o.key) INTO before, after
      FROM jsonb_each(before) AS o WHERE o.key <> 'updated_at' AND o.value IS DISTINCT FROM whole -> o.key;
    IF before IS NULL THEN RETURN NULL; END IF;
  END IF;
  PERFORM set_config('mooring.audit_seen', seen::text, true);
  PERFORM set_config('mooring.audit_changes', coalesce(current_setting('mooring.audit_changes', true), '') || jsonb_build_object(
    'table', TG_TABLE_NAME, 'id', whole ->> TG_ARGV[0], 'tenantId', whole ->> 'tenant_id', 'before', before, 'after', after)::text || E'\n', true);
  RETURN NULL;
END $$;

-- Gives a table that is not excluded the trigger above, with the last column of its primary key, and answers the table's name; null once all have it.
-- One table at a time, so that no two locks of it meet those of others. Outside of captured transactions the trigger's condition is all that it costs.
CREATE FUNCTION audit_attach(excluded text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  each record;
BEGIN
  FOR each IN
    SELECT c.oid::regclass AS name, key.attname AS key, c.relname = ANY (excluded) AS excluded,
           EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'audit') AS attached
      FROM pg_class c
      JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
      JOIN pg_attribute key ON key.attrelid = c.oid AND key.attnum = i.indkey[i.indnkeyatts - 1]
     WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace
  LOOP
    IF each.excluded AND each.attached THEN
      EXECUTE format('DROP TRIGGER IF EXISTS audit ON %s', each.name);
      RETURN each.name;
    ELSIF NOT each.excluded AND NOT each.attached THEN
      EXECUTE format('CREATE OR REPLACE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW WHEN (current_setting(''mooring.audit'', true) = ''on'')
        EXECUTE FUNCTION audit_capture(%L)', each.name, each.key);
      RETURN each.name;
    END IF;
  END LOOP;
  RETURN NULL;
END $$;

-- Nobody changes a record, and only retention deletes any.
CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'DELETE' OR current_setting('mooring.audit_retention', true) IS DISTINCT FROM 'on' THEN
    RAISE EXCEPTION 'the audit log is append-only';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_logs" FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only();
