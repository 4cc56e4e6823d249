-- Runs outside of a transaction.
create index concurrently alerts_tenant_id_last_seen_at_idx on alerts (tenant_id, last_seen_at);
create index concurrently security_alerts_tenant_id_last_event_at_idx on security_alerts (tenant_id, last_event_at);
