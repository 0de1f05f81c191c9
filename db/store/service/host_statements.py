"""What a worker writes of its host, as SQL for the connections of the queue, which wait for the database.

The same rows as `db.store.service.schedules` writes, on PostgreSQL alone, where the queue is.
"""

from __future__ import annotations

SAVE_HOST = """
INSERT INTO host (name, owner, started_at, seen_at, stopped_at, program_version, free_bytes, total_bytes,
                  devices, devices_read_at)
VALUES (%(name)s, %(owner)s, %(started_at)s, %(seen_at)s, NULL, %(program_version)s, %(free_bytes)s,
        %(total_bytes)s, %(devices)s::json, %(devices_read_at)s)
ON CONFLICT (name) DO UPDATE SET
    owner = excluded.owner, started_at = excluded.started_at, seen_at = excluded.seen_at, stopped_at = NULL,
    program_version = excluded.program_version, free_bytes = excluded.free_bytes,
    total_bytes = excluded.total_bytes,
    devices_read_at = coalesce(excluded.devices_read_at, host.devices_read_at),
    devices = CASE WHEN excluded.devices IS NULL THEN host.devices ELSE (
        SELECT coalesce(json_agg(known.device ORDER BY known.device ->> 'uuid'), '[]'::json)
        FROM (
            SELECT reported.value AS device FROM json_array_elements(excluded.devices) AS reported
            UNION ALL
            SELECT stored.value FROM json_array_elements(coalesce(host.devices, '[]'::json)) AS stored
            WHERE NOT %(is_first)s AND stored.value ->> 'uuid' NOT IN (
                SELECT reported.value ->> 'uuid' FROM json_array_elements(excluded.devices) AS reported
            )
        ) AS known
    ) END
"""
"""`devices` has the one GPU that the worker serves, of perhaps several of its host: the others stay,
unless it `is_first`, so that one that was taken out is forgotten. NULL leaves all as they are.
"""

NOTE_HOST_STOPPED = """
UPDATE host SET stopped_at = %(at)s WHERE name = %(name)s AND owner = %(owner)s
"""

SAVE_WORKER = """
INSERT INTO fleet_worker (owner, queue, host, served, started_at, seen_at, stopped_at, measured)
VALUES (%(owner)s, %(queue)s, %(host)s, %(served)s, now(), now(), NULL, %(measured)s)
ON CONFLICT (owner) DO UPDATE SET seen_at = now(), measured = excluded.measured
"""

NOTE_LAUNCHED = """
UPDATE fleet_launch SET worker = %(owner)s, worker_at = now() WHERE launch_id = (
    SELECT launch_id FROM fleet_launch
    WHERE queue = %(queue)s AND worker IS NULL AND (exit_code = 0 OR ended_at IS NULL)
        AND worker_due_at > now() - interval '1 day'
    ORDER BY launched_at DESC LIMIT 1 FOR UPDATE SKIP LOCKED
)
"""
"""A worker comes of the newest launch that still waits for one: older ones may have come to nothing."""

FORGET_WORKERS = """
DELETE FROM fleet_worker WHERE seen_at < now() - interval '7 days'
"""

NOTE_WORKER_STOPPED = """
UPDATE fleet_worker SET stopped_at = now(), measured = %(measured)s WHERE owner = %(owner)s
"""

SAVE_HEALTH = """
INSERT INTO host_health (host, seen_at, spool_trials, spool_bytes, database_errors)
VALUES (%(host)s, %(seen_at)s, %(spool_trials)s, %(spool_bytes)s, %(database_errors)s)
ON CONFLICT (host) DO UPDATE SET
    seen_at = excluded.seen_at, spool_trials = excluded.spool_trials, spool_bytes = excluded.spool_bytes,
    database_errors = excluded.database_errors
"""
