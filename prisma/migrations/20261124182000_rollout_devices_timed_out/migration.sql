-- Runs outside of a transaction.
create index concurrently rollout_devices_timed_out_idx on rollout_devices (tenant_id, rollout_id) where status = 'timed_out';
