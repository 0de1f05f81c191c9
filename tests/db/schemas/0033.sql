--
-- PostgreSQL database dump
--


-- Dumped from database version 15.20 (Debian 15.20-0+deb12u1)
-- Dumped by pg_dump version 15.20 (Debian 15.20-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: annotation; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.annotation (
    annotation_id character varying NOT NULL,
    text character varying NOT NULL,
    author character varying NOT NULL,
    url character varying,
    written_at timestamp with time zone NOT NULL,
    happened_at timestamp with time zone,
    build_id character varying,
    machine_id character varying,
    workload character varying
);


--
-- Name: api_token; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.api_token (
    token_id character varying NOT NULL,
    name character varying NOT NULL,
    secret_hash character varying NOT NULL,
    created_by character varying NOT NULL,
    scopes json NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    revoked_by character varying
);


--
-- Name: build; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.build (
    trials bigint NOT NULL,
    failed_trials bigint NOT NULL,
    cancelled_trials bigint DEFAULT '0'::bigint NOT NULL,
    first_seen_at timestamp with time zone,
    last_seen_at timestamp with time zone,
    build_id character varying NOT NULL,
    label character varying,
    torch character varying NOT NULL,
    torch_git character varying,
    torch_variant character varying,
    cuda character varying,
    driver character varying,
    triton character varying,
    cudnn character varying,
    python character varying,
    os character varying,
    compiler character varying,
    packages json NOT NULL
);


--
-- Name: compilewatch_schema; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.compilewatch_schema (
    version_num character varying(32) NOT NULL
);


--
-- Name: conditions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.conditions (
    conditions_id character varying NOT NULL,
    settings json NOT NULL
);


--
-- Name: data_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.data_version (
    id integer NOT NULL,
    version bigint NOT NULL,
    run_case_edition bigint DEFAULT '0'::bigint NOT NULL
);


--
-- Name: firing; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.firing (
    schedule character varying NOT NULL,
    fire_at timestamp with time zone NOT NULL,
    owner character varying NOT NULL,
    claimed_at timestamp with time zone NOT NULL,
    outcome character varying(32) NOT NULL,
    firings bigint NOT NULL,
    request_id character varying
);


--
-- Name: fleet_launch; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_launch (
    launch_id character varying NOT NULL,
    queue character varying NOT NULL,
    host character varying NOT NULL,
    output character varying NOT NULL,
    launched_at timestamp with time zone NOT NULL,
    worker_due_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    worker_at timestamp with time zone,
    exit_code integer,
    worker character varying
);


--
-- Name: fleet_worker; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fleet_worker (
    owner character varying NOT NULL,
    queue character varying NOT NULL,
    host character varying NOT NULL,
    served character varying NOT NULL,
    started_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    stopped_at timestamp with time zone,
    measured bigint NOT NULL
);


--
-- Name: host; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.host (
    name character varying NOT NULL,
    owner character varying NOT NULL,
    program_version character varying NOT NULL,
    started_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    stopped_at timestamp with time zone,
    devices_read_at timestamp with time zone,
    free_bytes bigint,
    total_bytes bigint,
    devices json
);


--
-- Name: host_health; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.host_health (
    host character varying NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    spool_trials bigint NOT NULL,
    spool_bytes bigint NOT NULL,
    database_errors bigint NOT NULL
);


--
-- Name: issue_script; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.issue_script (
    issue_id character varying NOT NULL,
    made_at timestamp with time zone NOT NULL,
    script character varying,
    problem character varying,
    is_private boolean NOT NULL,
    runs json NOT NULL
);


--
-- Name: job_state; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.job_state (
    process character varying NOT NULL,
    job character varying NOT NULL,
    host character varying NOT NULL,
    launch character varying NOT NULL,
    sequence bigint NOT NULL,
    steps bigint NOT NULL,
    compiles_after_ready bigint NOT NULL,
    cost_after_ready_ns bigint NOT NULL,
    cache_hits bigint NOT NULL,
    cache_misses bigint NOT NULL,
    cache_bypasses bigint NOT NULL,
    dropped bigint NOT NULL,
    ready boolean NOT NULL,
    ended boolean NOT NULL,
    events json NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    rank bigint,
    compiling_ns bigint,
    since_step_ns bigint,
    compiling character varying,
    compiling_since timestamp with time zone,
    stepped_at timestamp with time zone,
    compiled_at timestamp with time zone,
    told_at timestamp with time zone
);


--
-- Name: latest; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.latest (
    series_id character varying NOT NULL,
    run_id character varying NOT NULL,
    started_at timestamp with time zone NOT NULL
);


--
-- Name: machine; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.machine (
    trials bigint NOT NULL,
    failed_trials bigint NOT NULL,
    cancelled_trials bigint DEFAULT '0'::bigint NOT NULL,
    first_seen_at timestamp with time zone,
    last_seen_at timestamp with time zone,
    machine_id character varying NOT NULL,
    name character varying NOT NULL,
    device character varying NOT NULL,
    device_name character varying NOT NULL,
    device_count bigint,
    device_memory_bytes bigint,
    power_limit_w double precision,
    cpu_name character varying,
    cpu_count bigint,
    ram_bytes bigint,
    threads bigint
);


--
-- Name: notification; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.notification (
    regression_id character varying NOT NULL,
    channel character varying NOT NULL,
    state character varying(32) NOT NULL,
    deliveries bigint NOT NULL,
    changed_at timestamp with time zone NOT NULL,
    problem character varying
);


--
-- Name: regression; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.regression (
    regression_id character varying NOT NULL,
    series_id character varying NOT NULL,
    metric character varying(32) NOT NULL,
    base_key character varying NOT NULL,
    head_key character varying NOT NULL,
    revision bigint NOT NULL,
    revises character varying,
    verdict character varying(32) NOT NULL,
    recorded_at timestamp with time zone NOT NULL,
    document json NOT NULL
);


--
-- Name: report; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.report (
    report_id character varying NOT NULL,
    title character varying NOT NULL,
    created_by character varying NOT NULL,
    created_at timestamp with time zone NOT NULL,
    data_version bigint NOT NULL,
    revoked_at timestamp with time zone,
    revoked_by character varying,
    content json
);


--
-- Name: run; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.run (
    trials bigint NOT NULL,
    failed_trials bigint NOT NULL,
    cancelled_trials bigint DEFAULT '0'::bigint NOT NULL,
    first_seen_at timestamp with time zone,
    last_seen_at timestamp with time zone,
    run_id character varying NOT NULL,
    suite character varying,
    label character varying,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    planned_trials bigint,
    status character varying(32),
    advice json
);


--
-- Name: run_case; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.run_case (
    run_id character varying NOT NULL,
    build_id character varying NOT NULL,
    series_id character varying NOT NULL,
    conditions_id character varying NOT NULL,
    source_kind character varying,
    source_name character varying,
    machine character varying,
    build_label character varying,
    workload_reason character varying,
    strategy_reason character varying,
    code character varying,
    status character varying,
    trials bigint,
    failed_trials bigint,
    suspect_trials bigint,
    wild_trials bigint,
    counted_trials bigint,
    first_look boolean NOT NULL,
    failure_kind character varying,
    latency_ns double precision,
    latency_low_ns double precision,
    latency_high_ns double precision,
    control_latency_ns double precision,
    pooled_eager_ns double precision,
    control character varying,
    speedup double precision,
    speedup_low double precision,
    speedup_high double precision,
    timing_method character varying,
    bound character varying,
    device_ns double precision,
    issue_ns double precision,
    wall_sync_ns double precision,
    wall_pipelined_ns double precision,
    control_device_ns double precision,
    control_issue_ns double precision,
    control_wall_sync_ns double precision,
    control_wall_pipelined_ns double precision,
    device_speedup double precision,
    issue_speedup double precision,
    wall_sync_speedup double precision,
    wall_pipelined_speedup double precision,
    interval_method character varying,
    compile_cost_ns double precision,
    compile_cost_low_ns double precision,
    compile_cost_high_ns double precision,
    break_even character varying,
    break_even_reason character varying,
    break_even_steps bigint,
    break_even_interval character varying,
    break_even_low bigint,
    break_even_high bigint,
    break_even_time_ns double precision,
    latency_p95_ns double precision,
    latency_p99_ns double precision,
    latency_sd_ns double precision,
    time_to_first_result_ns double precision,
    first_call_ns double precision,
    process_tree_cpu_ns double precision,
    first_call_cpu_ns double precision,
    first_call_instructions double precision,
    energy_per_step_j double precision,
    latency_between_sd_ns double precision,
    samples bigint,
    throughput_per_s double precision,
    throughput_low_per_s double precision,
    throughput_high_per_s double precision,
    control_throughput_per_s double precision,
    peak_bytes double precision,
    control_peak_bytes double precision,
    memory_ratio double precision,
    graphs bigint,
    ops_captured bigint,
    graph_breaks bigint,
    recompiles bigint,
    recompile_limit_hit bigint,
    compiled_share double precision,
    compiled_time_share double precision,
    cudagraph_launches bigint,
    cudagraph_skips bigint,
    cache_bypasses bigint,
    cache_hit_rate double precision,
    compiles_after_ready bigint,
    float32_error double precision,
    gpu_utilization_percent double precision,
    numerics_status character varying,
    nothing_compiled boolean NOT NULL,
    last_started_at timestamp with time zone NOT NULL,
    first_started_at timestamp with time zone NOT NULL,
    point_suspect boolean NOT NULL,
    latency_ns_p10 double precision,
    latency_ns_p90 double precision,
    speedup_p10 double precision,
    speedup_p90 double precision,
    throughput_per_s_p10 double precision,
    throughput_per_s_p90 double precision,
    latency_p95_ns_p10 double precision,
    latency_p95_ns_p90 double precision,
    latency_p99_ns_p10 double precision,
    latency_p99_ns_p90 double precision,
    device_ns_p10 double precision,
    device_ns_p90 double precision,
    issue_ns_p10 double precision,
    issue_ns_p90 double precision,
    device_speedup_p10 double precision,
    device_speedup_p90 double precision,
    wall_sync_ns_p10 double precision,
    wall_sync_ns_p90 double precision,
    wall_pipelined_ns_p10 double precision,
    wall_pipelined_ns_p90 double precision,
    issue_speedup_p10 double precision,
    issue_speedup_p90 double precision,
    wall_sync_speedup_p10 double precision,
    wall_sync_speedup_p90 double precision,
    wall_pipelined_speedup_p10 double precision,
    wall_pipelined_speedup_p90 double precision,
    compile_cost_ns_p10 double precision,
    compile_cost_ns_p90 double precision,
    peak_bytes_p10 double precision,
    peak_bytes_p90 double precision,
    energy_per_step_j_p10 double precision,
    energy_per_step_j_p90 double precision,
    time_to_first_result_ns_p10 double precision,
    time_to_first_result_ns_p90 double precision,
    process_tree_cpu_ns_p10 double precision,
    process_tree_cpu_ns_p90 double precision,
    first_call_cpu_ns_p10 double precision,
    first_call_cpu_ns_p90 double precision,
    first_call_instructions_p10 double precision,
    first_call_instructions_p90 double precision
);


--
-- Name: run_part; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.run_part (
    run_id character varying NOT NULL,
    machine_id character varying NOT NULL,
    build_id character varying NOT NULL,
    trials bigint NOT NULL,
    first_seen_at timestamp with time zone NOT NULL,
    last_seen_at timestamp with time zone NOT NULL
);


--
-- Name: run_request; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.run_request (
    request_id character varying NOT NULL,
    kind character varying(32) NOT NULL,
    state character varying(32) NOT NULL,
    priority bigint NOT NULL,
    attempts bigint NOT NULL,
    beat bigint NOT NULL,
    spec json NOT NULL,
    run_ids json NOT NULL,
    history json NOT NULL,
    asked_by character varying NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    cancel_asked boolean NOT NULL,
    owner character varying
);


--
-- Name: schedule; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.schedule (
    name character varying NOT NULL,
    spec json NOT NULL,
    from_config boolean NOT NULL,
    paused boolean NOT NULL,
    active_since timestamp with time zone NOT NULL,
    next_run_at timestamp with time zone,
    changed_at timestamp with time zone,
    upcoming json,
    changed_by character varying
);


--
-- Name: schedule_watch; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.schedule_watch (
    schedule character varying NOT NULL,
    last_result_at timestamp with time zone,
    due_at timestamp with time zone,
    told_due_at timestamp with time zone
);


--
-- Name: series; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.series (
    trials bigint NOT NULL,
    failed_trials bigint NOT NULL,
    cancelled_trials bigint DEFAULT '0'::bigint NOT NULL,
    first_seen_at timestamp with time zone,
    last_seen_at timestamp with time zone,
    series_id character varying NOT NULL,
    machine_id character varying NOT NULL,
    workload_id character varying NOT NULL,
    strategy_id character varying NOT NULL
);


--
-- Name: stored_view; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.stored_view (
    view_id character varying NOT NULL,
    link character varying NOT NULL,
    stored_at timestamp with time zone NOT NULL,
    stored_by character varying
);


--
-- Name: strategy; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.strategy (
    trials bigint NOT NULL,
    failed_trials bigint NOT NULL,
    cancelled_trials bigint DEFAULT '0'::bigint NOT NULL,
    first_seen_at timestamp with time zone,
    last_seen_at timestamp with time zone,
    strategy_id character varying NOT NULL,
    name character varying NOT NULL,
    kind character varying(32) NOT NULL,
    backend character varying,
    mode character varying,
    dynamic boolean,
    fullgraph boolean NOT NULL,
    scope character varying NOT NULL,
    cache character varying(32) NOT NULL,
    options json NOT NULL,
    regions json DEFAULT '{}'::json NOT NULL
);


--
-- Name: triage_event; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.triage_event (
    regression_id character varying NOT NULL,
    number bigint NOT NULL,
    state character varying(32) NOT NULL,
    author character varying NOT NULL,
    at timestamp with time zone NOT NULL,
    note character varying,
    url character varying
);


--
-- Name: trial; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.trial (
    trial_id character varying NOT NULL,
    content_hash character varying NOT NULL,
    series_id character varying NOT NULL,
    build_id character varying NOT NULL,
    run_id character varying NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone,
    suite character varying,
    label character varying,
    conditions_id character varying,
    source_kind character varying(32) NOT NULL,
    source_name character varying NOT NULL,
    machine_name character varying NOT NULL,
    device_uuid character varying,
    build_label character varying,
    status character varying(32) NOT NULL,
    failure_kind character varying(32),
    failure_message character varying,
    code_commit character varying,
    code_hash character varying,
    code_dirty boolean,
    record_version bigint DEFAULT '1'::bigint NOT NULL,
    latency_ns double precision,
    latency_p05_ns double precision,
    latency_p95_ns double precision,
    latency_p99_ns double precision,
    latency_sd_ns double precision,
    control_latency_ns double precision,
    samples bigint,
    control_samples bigint,
    timing_method character varying(32),
    control_timing_method character varying(32),
    device_ns double precision,
    issue_ns double precision,
    wall_sync_ns double precision,
    wall_pipelined_ns double precision,
    control_device_ns double precision,
    control_issue_ns double precision,
    control_wall_sync_ns double precision,
    control_wall_pipelined_ns double precision,
    unflushed_ns double precision,
    control_unflushed_ns double precision,
    energy_per_step_j double precision,
    time_to_first_result_ns bigint,
    first_call_ns bigint,
    until_steady_ns bigint,
    calls_until_steady bigint,
    process_tree_cpu_ns bigint,
    first_call_cpu_ns bigint,
    first_call_instructions bigint,
    peak_bytes bigint,
    peak_reserved_bytes bigint,
    peak_with_compile_bytes bigint,
    peak_rss_bytes bigint,
    control_peak_bytes bigint,
    graphs bigint,
    ops_captured bigint,
    graph_breaks bigint,
    recompiles bigint,
    compile_threads bigint,
    compile_pool_size bigint,
    numerics_status character varying(32),
    suspect boolean,
    cpu_stall_fraction double precision,
    recompile_limit_hit bigint,
    cudagraph_launches bigint,
    cudagraph_skips bigint,
    cache_bypasses bigint,
    compiled_share double precision,
    compiled_time_share double precision,
    gpu_utilization_percent double precision,
    workload_reason character varying,
    strategy_reason character varying,
    float32_error double precision,
    cache_hit_rate double precision,
    compiles_after_ready bigint
);


--
-- Name: trial_detail; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.trial_detail (
    trial_id character varying NOT NULL,
    failure json,
    cold_start json,
    summary json,
    memory json,
    compiler json,
    numerics json,
    device_state json,
    host_state json,
    sampling json,
    profile json,
    trace json,
    stream json,
    timing json,
    code json
);


--
-- Name: trial_samples; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.trial_samples (
    trial_id character varying NOT NULL,
    kind character varying NOT NULL,
    n bigint NOT NULL,
    codec character varying NOT NULL,
    data bytea NOT NULL
);


--
-- Name: workload; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.workload (
    trials bigint NOT NULL,
    failed_trials bigint NOT NULL,
    cancelled_trials bigint DEFAULT '0'::bigint NOT NULL,
    first_seen_at timestamp with time zone,
    last_seen_at timestamp with time zone,
    workload_id character varying NOT NULL,
    name character varying NOT NULL,
    version character varying NOT NULL,
    task character varying(32) NOT NULL,
    batch_size bigint,
    shape json NOT NULL,
    dtype character varying NOT NULL,
    items_per_iteration double precision,
    item character varying,
    variant character varying,
    ranks bigint
);


--
-- Data for Name: annotation; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.annotation VALUES
	('annotation-1', 'new driver', 'ada', NULL, '2026-11-20 18:00:00+00', NULL, '30c8ae91673fe59c', NULL, 'bert-base');


--
-- Data for Name: api_token; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.api_token VALUES
	('0badcafe', 'grafana', '160520dc2410737eb2fa44ace8259b152e56029ae4514b6933b74c4b072662b1', 'ann', '["metrics"]', '2026-11-20 18:00:00+00', NULL, NULL, NULL);


--
-- Data for Name: build; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.build VALUES
	(20, 0, 0, '2026-11-20 18:00:00+00', '2026-11-20 18:19:00+00', '1215300cfae2a990', NULL, '2.12.0', '1476beec9d', 'cu130', '13.0', '580.159.03', '3.6.0', '9.13', '3.11.7', 'Linux 6.18', 'g++ 12.2.0', '{"transformers": "5.23.0"}'),
	(24, 1, 0, '2026-11-20 18:00:00+00', '2026-11-21 00:19:00+00', '30c8ae91673fe59c', NULL, '2.13.0', '86ecc599f5', 'cu130', '13.0', '580.159.03', '3.6.0', '9.13', '3.11.7', 'Linux 6.18', 'g++ 12.2.0', '{"transformers": "5.23.0"}');


--
-- Data for Name: compilewatch_schema; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.compilewatch_schema VALUES
	('0033');


--
-- Data for Name: conditions; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.conditions VALUES
	('49a6507115bc728c', '{"matmul_precision": "high", "cudnn_benchmark": false}');


--
-- Data for Name: data_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.data_version VALUES
	(1, 9, 1350201670);


--
-- Data for Name: firing; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.firing VALUES
	('nightly', '2026-11-20 18:00:00+00', 'gpu-box:1:ab', '2026-11-20 18:00:00+00', 'queued', 2, 'fired');


--
-- Data for Name: fleet_launch; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_launch VALUES
	('launch-1', 'nvidia-h200', 'gpu-box', 'Submitted batch job 7', '2026-11-20 18:00:00+00', '2026-11-20 19:00:00+00', '2026-11-20 18:00:00+00', '2026-11-20 18:05:00+00', 0, 'gpu-box:2:cd');


--
-- Data for Name: fleet_worker; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fleet_worker VALUES
	('gpu-box:2:cd', 'nvidia-h200', 'gpu-box', '0', '2026-11-20 18:00:00+00', '2026-11-20 18:00:00+00', '2026-11-20 19:00:00+00', 12);


--
-- Data for Name: host; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.host VALUES
	('gpu-box', 'gpu-box:1:ab', '0.1.0', '2026-11-20 18:00:00+00', '2026-11-20 18:00:00+00', NULL, '2026-11-20 18:00:00+00', 1000000000000, 2000000000000, '[{"name": "NVIDIA H200", "uuid": "GPU-1", "temperature_c": 41.0, "power_w": null, "power_limit_w": null, "sm_clock_mhz": null, "utilization_percent": null, "used_bytes": null, "total_bytes": 150754820096, "throttle_reasons": null, "uncorrected_ecc_errors": null}]');


--
-- Data for Name: host_health; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.host_health VALUES
	('gpu-box', '2026-11-20 18:00:00+00', 2, 4096, 1);


--
-- Data for Name: issue_script; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.issue_script VALUES
	('issue-1', '2026-11-20 18:00:00+00', 'import torch
', NULL, false, '[{"build_id": "30c8ae91673fe59c", "torch": "2.13.0", "eager_ns": 2000000.0, "compiled_ns": 1000000.0, "problem": null}]');


--
-- Data for Name: job_state; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.job_state VALUES
	('00000000000000000000000000000000', 'ranker-serve', 'gpu-box', '', 3, 12, 1, 2000000000, 0, 0, 0, 0, true, false, '[{"number": 1, "began_ns": 1, "cost_ns": 2000000000, "what": "forward (serve.py:6)", "reason": "size", "request": null}]', '2026-11-20 18:00:00+00', 0, 1000000, 2000000, 'forward (serve.py:6)', '2026-11-20 17:59:59.999+00', '2026-11-20 17:59:59.998+00', '2026-11-20 18:00:00+00', '2026-11-20 18:02:00+00');


--
-- Data for Name: latest; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.latest VALUES
	('859e1eff37513887', 'run-gpu-box-3-0-0001', '2026-11-21 00:17:00+00'),
	('8dc5175709070e63', 'run-gpu-box-3-0-0001', '2026-11-21 00:19:00+00'),
	('975737552bb137a1', 'run-gpu-box-3-0-0001', '2026-11-21 00:18:00+00'),
	('ca9f71320bea57d8', 'run-gpu-box-3-0-0001', '2026-11-21 00:16:00+00');


--
-- Data for Name: machine; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.machine VALUES
	(44, 1, 0, '2026-11-20 18:00:00+00', '2026-11-21 00:19:00+00', 'dfa299fc7b262385', 'gpu-box-3', 'cuda', 'NVIDIA H200', 1, 150754820096, 700, 'AMD EPYC 9554', 16, 137438953472, 8);


--
-- Data for Name: notification; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.notification VALUES
	('9a33c813c7d5185c', 'team', 'sending', 1, '2026-11-20 18:00:00+00', NULL),
	('d8c1ffd9e38bf00d', 'team', 'sending', 1, '2026-11-20 18:00:00+00', NULL);


--
-- Data for Name: regression; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.regression VALUES
	('9a33c813c7d5185c', '8dc5175709070e63', 'latency', '9e581f755a8a8e85', '2d4257fd0c292a00', 0, NULL, 'regressed', '2026-11-20 18:00:00+00', '{"regression_id": "9a33c813c7d5185c", "series_id": "8dc5175709070e63", "machine_id": "dfa299fc7b262385", "machine": "gpu-box-3", "base_key": "9e581f755a8a8e85", "head_key": "2d4257fd0c292a00", "base": {"name": "run-gpu-box-3-0-0000", "build_ids": ["1215300cfae2a990"], "run_ids": ["run-gpu-box-3-0-0000"], "components": {"torch": "2.12.0", "torch_variant": "cu130", "cuda": "13.0", "driver": "580.159.03", "triton": "3.6.0", "cudnn": "9.13", "python": "3.11.7", "os": "Linux 6.18", "compiler": "g++ 12.2.0", "code": null, "transformers": "5.23.0"}}, "head": {"name": "run-gpu-box-3-0-0001", "build_ids": ["30c8ae91673fe59c"], "run_ids": ["run-gpu-box-3-0-0001"], "components": {"torch": "2.13.0", "torch_variant": "cu130", "cuda": "13.0", "driver": "580.159.03", "triton": "3.6.0", "cudnn": "9.13", "python": "3.11.7", "os": "Linux 6.18", "compiler": "g++ 12.2.0", "code": null, "transformers": "5.23.0"}}, "changed_components": ["torch"], "row": {"case": {"workload": "bert-base", "strategy": "default", "workload_id": "c3b5c864f308f661", "strategy_id": "f68d398d87f7eb54", "strategy_kind": "compile", "task": "inference", "batch_size": 8, "shape": {"sequence_length": 128}, "dtype": "bfloat16", "cache": "cold", "source_kind": "measured", "source_name": "compilewatch 0.1.0", "timing_method": "ungated"}, "metric": "latency", "unit": "ns", "base": 8020030.25455, "head": 11189194.7413, "change": 0.39515617599469843, "interval": [0.2839736688832102, 0.5159662558416527], "p_value": 0.000320779936329053, "q_value": 0.000641559872658106, "verdict": "regressed", "suspected": true, "who_moved": "compiled", "cause": "compiler", "eager_change": -0.0003499900891007223, "compiled_change": 0.39515617599469843, "bound": null, "device_change": null, "issue_change": null, "cycles_change": null, "trials": [5, 5], "more_trials": null, "unseen": null, "significance_threshold": 0.08659251338712726, "visible_change": 0.2190287836153754, "until_decided": false, "design": "separate runs", "reason": "Latency rose by 39.5 %; eager did not move."}, "also": [{"case": {"workload": "bert-base", "strategy": "default", "workload_id": "c3b5c864f308f661", "strategy_id": "f68d398d87f7eb54", "strategy_kind": "compile", "task": "inference", "batch_size": 8, "shape": {"sequence_length": 128}, "dtype": "bfloat16", "cache": "cold", "source_kind": "measured", "source_name": "compilewatch 0.1.0", "timing_method": "ungated"}, "metric": "speedup", "unit": "x", "base": 1.49566626171, "head": 1.0716669711, "change": -0.28348522759598177, "interval": [-0.33462082578199337, -0.2284197658026303], "p_value": 0.0006283520494272824, "q_value": 0.0006373154475860713, "verdict": "regressed", "suspected": true, "who_moved": "compiled", "cause": "compiler", "eager_change": -0.0003499900891007223, "compiled_change": 0.39515617599469843, "bound": null, "device_change": null, "issue_change": null, "cycles_change": null, "trials": [5, 5], "more_trials": null, "unseen": null, "significance_threshold": 0.0768518164790913, "visible_change": 0.1839783516620424, "until_decided": false, "design": "separate runs", "reason": "Speedup fell because compiled got slower."}, {"case": {"workload": "bert-base", "strategy": "default", "workload_id": "c3b5c864f308f661", "strategy_id": "f68d398d87f7eb54", "strategy_kind": "compile", "task": "inference", "batch_size": 8, "shape": {"sequence_length": 128}, "dtype": "bfloat16", "cache": "cold", "source_kind": "measured", "source_name": "compilewatch 0.1.0", "timing_method": "ungated"}, "metric": "break_even", "unit": "steps", "base": 1509.0, "head": 7483.0, "change": 3.958913187541418, "interval": [3.0290364484696117, 5.10746956846061], "p_value": 9.628832763201606e-06, "q_value": 1.4168453064668693e-05, "verdict": "regressed", "suspected": true, "who_moved": "compiled", "cause": "compiler", "eager_change": -0.0003499900891007223, "compiled_change": 0.39515617599469843, "bound": null, "device_change": null, "issue_change": null, "cycles_change": null, "trials": [5, 5], "more_trials": null, "unseen": null, "significance_threshold": 0.2312041132633548, "visible_change": 0.48344614833949423, "until_decided": false, "design": "separate runs", "reason": "Break-even rose by 396 %."}], "tally": {"metric": "latency", "slower": 2, "faster": 0, "unchanged": 0, "undecided": 2, "set_aside": 0, "failing": 0, "missing": 0, "slower_by": {"break_even": 2, "latency": 2, "speedup": 2}, "faster_by": {}}, "revision": 0, "revises": null, "recorded_at": "2026-11-20T18:00:00Z", "found_on": null}'),
	('d8c1ffd9e38bf00d', '859e1eff37513887', 'latency', '9e581f755a8a8e85', '2d4257fd0c292a00', 0, NULL, 'regressed', '2026-11-20 18:00:00+00', '{"regression_id": "d8c1ffd9e38bf00d", "series_id": "859e1eff37513887", "machine_id": "dfa299fc7b262385", "machine": "gpu-box-3", "base_key": "9e581f755a8a8e85", "head_key": "2d4257fd0c292a00", "base": {"name": "run-gpu-box-3-0-0000", "build_ids": ["1215300cfae2a990"], "run_ids": ["run-gpu-box-3-0-0000"], "components": {"torch": "2.12.0", "torch_variant": "cu130", "cuda": "13.0", "driver": "580.159.03", "triton": "3.6.0", "cudnn": "9.13", "python": "3.11.7", "os": "Linux 6.18", "compiler": "g++ 12.2.0", "code": null, "transformers": "5.23.0"}}, "head": {"name": "run-gpu-box-3-0-0001", "build_ids": ["30c8ae91673fe59c"], "run_ids": ["run-gpu-box-3-0-0001"], "components": {"torch": "2.13.0", "torch_variant": "cu130", "cuda": "13.0", "driver": "580.159.03", "triton": "3.6.0", "cudnn": "9.13", "python": "3.11.7", "os": "Linux 6.18", "compiler": "g++ 12.2.0", "code": null, "transformers": "5.23.0"}}, "changed_components": ["torch"], "row": {"case": {"workload": "mlp", "strategy": "default", "workload_id": "3ea8ec7f389b5545", "strategy_id": "f68d398d87f7eb54", "strategy_kind": "compile", "task": "training", "batch_size": 64, "shape": {"features": 512}, "dtype": "float32", "cache": "cold", "source_kind": "measured", "source_name": "compilewatch 0.1.0", "timing_method": "ungated"}, "metric": "latency", "unit": "ns", "base": 8019080.46973, "head": 11213682.6264, "change": 0.3983751215277367, "interval": [0.28693745663202264, 0.5194623254071935], "p_value": 0.0003118362470880996, "q_value": 0.000641559872658106, "verdict": "regressed", "suspected": true, "who_moved": "compiled", "cause": "compiler", "eager_change": 0.0011914092061856383, "compiled_change": 0.3983751215277367, "bound": null, "device_change": null, "issue_change": null, "cycles_change": null, "trials": [5, 5], "more_trials": null, "unseen": null, "significance_threshold": 0.08659136022612304, "visible_change": 0.21901246257939955, "until_decided": false, "design": "separate runs", "reason": "Latency rose by 39.8 %; eager did not move."}, "also": [{"case": {"workload": "mlp", "strategy": "default", "workload_id": "3ea8ec7f389b5545", "strategy_id": "f68d398d87f7eb54", "strategy_kind": "compile", "task": "training", "batch_size": 64, "shape": {"features": 512}, "dtype": "float32", "cache": "cold", "source_kind": "measured", "source_name": "compilewatch 0.1.0", "timing_method": "ungated"}, "metric": "speedup", "unit": "x", "base": 1.4964974844, "head": 1.07144385095, "change": -0.2840323073594319, "interval": [-0.3351938606082083, -0.22893350928734196], "p_value": 0.0006373154475860713, "q_value": 0.0006373154475860713, "verdict": "regressed", "suspected": true, "who_moved": "compiled", "cause": "compiler", "eager_change": 0.0011914092061856383, "compiled_change": 0.3983751215277367, "bound": null, "device_change": null, "issue_change": null, "cycles_change": null, "trials": [5, 5], "more_trials": null, "unseen": null, "significance_threshold": 0.07695710105141684, "visible_change": 0.18479247258636244, "until_decided": false, "design": "separate runs", "reason": "Speedup fell because compiled got slower."}, {"case": {"workload": "mlp", "strategy": "default", "workload_id": "3ea8ec7f389b5545", "strategy_id": "f68d398d87f7eb54", "strategy_kind": "compile", "task": "training", "batch_size": 64, "shape": {"features": 512}, "dtype": "float32", "cache": "cold", "source_kind": "measured", "source_name": "compilewatch 0.1.0", "timing_method": "ungated"}, "metric": "break_even", "unit": "steps", "base": 1507.0, "head": 7502.0, "change": 3.978102189781022, "interval": [3.0413435873115855, 5.135955905906864], "p_value": 1.4168453064668693e-05, "q_value": 1.4168453064668693e-05, "verdict": "regressed", "suspected": true, "who_moved": "compiled", "cause": "compiler", "eager_change": 0.0011914092061856383, "compiled_change": 0.3983751215277367, "bound": null, "device_change": null, "issue_change": null, "cycles_change": null, "trials": [5, 5], "more_trials": null, "unseen": null, "significance_threshold": 0.23219155386000587, "visible_change": 0.4972725907776085, "until_decided": false, "design": "separate runs", "reason": "Break-even rose by 398 %."}], "tally": {"metric": "latency", "slower": 2, "faster": 0, "unchanged": 0, "undecided": 2, "set_aside": 0, "failing": 0, "missing": 0, "slower_by": {"break_even": 2, "latency": 2, "speedup": 2}, "faster_by": {}}, "revision": 0, "revises": null, "recorded_at": "2026-11-20T18:00:00Z", "found_on": null}');


--
-- Data for Name: report; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.report VALUES
	('report-1', 'Overview', 'ann', '2026-11-20 18:00:00+00', 7, NULL, NULL, '{"page": "overview", "rows": [[1.5, null, "mlp"]]}');


--
-- Data for Name: run; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.run VALUES
	(4, 1, 0, '2026-11-20 18:00:00+00', '2026-11-20 18:00:00+00', '01KA8Z7Q3V5T2M9N4R6S8W0XY0', 'standard', NULL, NULL, NULL, NULL, NULL, NULL),
	(0, 0, 0, NULL, NULL, 'announced', 'smoke', 'new driver', '2026-11-20 18:00:00+00', NULL, 3, 'running', NULL),
	(20, 0, 0, '2026-11-20 18:00:00+00', '2026-11-20 18:19:00+00', 'run-gpu-box-3-0-0000', 'standard', NULL, NULL, NULL, NULL, NULL, NULL),
	(20, 0, 0, '2026-11-21 00:00:00+00', '2026-11-21 00:19:00+00', 'run-gpu-box-3-0-0001', 'standard', NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: run_case; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.run_case VALUES
	('01KA8Z7Q3V5T2M9N4R6S8W0XY0', '30c8ae91673fe59c', '8dc5175709070e63', '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', NULL, NULL, NULL, '0123456-dirty+0000000', 'mixed', 4, 1, 0, 0, 3, false, 'out_of_memory', 8011342.314030071, 7986961.18055927, 8035797.873763361, 13939582.843992015, 13939582.843992015, 'in_process', 1.7399809292357862, 1.264400203098608, 2.3944425401742193, 'gated', 'device', 5000798, 2998347.5, 8017019.5, 4992011, 6005524, 9001777.5, 15023947, 8954061.5, 1.2009131342637716, 3.002246237302381, 1.8740065432047408, 1.7936782390904187, 'student_t', 5999948941.5, NULL, NULL, 'steps', NULL, 1013, 'none', NULL, NULL, 14115438705.612461, 8072242.85, NULL, 51335.0136940636, 10345000000, 6008000000, 15907000000, NULL, NULL, NULL, 9826.212906472836, 12, 998.5842180267085, 995.545199826362, 1001.632513185674, 573.905265999263, 1234567890, 1634567890, 1.3240000029484, 1, 412, 1, 2, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 97, 'pass', false, '2026-11-20 18:00:00+00', '2026-11-20 18:00:00+00', false, 8003403.9, 8017019.5, 1.5748013086409482, 1.8740065432047408, 997.877078881996, 999.5754157763992, 8072242.85, 8072242.85, NULL, NULL, 5000798, 5000798, 2998347.5, 2998347.5, 1.2009131342637716, 1.2009131342637716, 8017019.5, 8017019.5, 4992011, 4992011, 3.002246237302381, 3.002246237302381, 1.8740065432047408, 1.8740065432047408, 1.7936782390904187, 1.7936782390904187, 5999948941.5, 5999948941.5, 1234567890, 1234567890, NULL, NULL, 10345000000, 10345000000, 15907000000, 15907000000, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000', '1215300cfae2a990', 'ca9f71320bea57d8', '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', NULL, NULL, NULL, NULL, 'ok', 5, 0, 0, 0, 5, false, NULL, 12009513.226563286, 11926693.826650819, 12092907.727430096, NULL, 12005022.648814956, 'none', 1, 1, 1, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'reference', NULL, NULL, NULL, 'unknown', 'eager is the reference', NULL, 'none', NULL, NULL, NULL, 12095867.449772524, NULL, 67268.91686606032, 2123005574.7368877, 32005531.44648655, 2155011148.186973, NULL, NULL, NULL, 66975.11948384266, 12, 5329.108581890011, 5292.358251839639, 5366.114107581823, NULL, 1234567890, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, false, '2026-11-20 18:16:00+00', '2026-11-20 18:00:00+00', false, 11946598.1, 12081431.1, NULL, NULL, 5297.3985142465535, 5357.17373019292, 12061062.45, 12142415.790000001, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1234567890, 1234567890, NULL, NULL, 2122957367.2, 2123070917.2, 2154914734.4, 2155141834.4, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000', '1215300cfae2a990', '859e1eff37513887', '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', NULL, NULL, NULL, NULL, 'ok', 5, 0, 0, 0, 5, false, NULL, 8019080.469726399, 8001935.8111512195, 8036261.861827638, 12000533.750176195, 12005022.648814956, 'in_process', 1.4964974844036745, 1.4868776035647364, 1.5061796044660254, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'student_t', 6000001480.52037, 5999921065.244305, 6000081896.874219, 'steps', NULL, 1507, 'bounded', 1488, 1527, 18089276150.416176, 8086381.612712346, NULL, 46083.53363494884, 10345019583.569427, 6008019583.547359, 15907039167.120472, NULL, NULL, NULL, 13822.169199333366, 12, 7980.964930033132, 7963.9017618379185, 7998.064657156063, 5333.096121583787, 1234567890, 1634567890, 1.3240000029484, 1, 412, 1, 2, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 97, 'pass', false, '2026-11-20 18:17:00+00', '2026-11-20 18:01:00+00', false, 8004671, 8032498.7, 1.4891655590959099, 1.5045759404034202, 7967.635200800608, 7995.332167815462, 8066464.76, 8104621.02, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5999958957.6, 6000064341.6, 1234567890, 1234567890, NULL, NULL, 10344992277.8, 10345046849.8, 15906984555.6, 15907093699.6, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000', '1215300cfae2a990', '975737552bb137a1', '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', NULL, NULL, NULL, NULL, 'ok', 5, 0, 0, 0, 5, false, NULL, 12008872.919404764, 11944881.751546498, 12073206.901001083, NULL, 12002078.872631071, 'none', 1, 1, 1, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'reference', NULL, NULL, NULL, 'unknown', 'eager is the reference', NULL, 'none', NULL, NULL, NULL, 12088804.231994422, NULL, 68235.13505740429, 2122990925.4069467, 31990886.666778762, 2154981849.663024, NULL, NULL, NULL, 51794.948481970714, 12, 666.1740909151473, 662.6242775096199, 669.7429213951192, NULL, 1234567890, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, false, '2026-11-20 18:18:00+00', '2026-11-20 18:02:00+00', false, 11976130.5, 12063763.1, NULL, NULL, 663.150745056719, 667.9953958374205, 12052004.600000001, 12136155.46, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1234567890, 1234567890, NULL, NULL, 2122941263.2, 2123051455, 2154882526.4, 2155102910, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000', '1215300cfae2a990', '8dc5175709070e63', '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', NULL, NULL, NULL, NULL, 'ok', 5, 0, 0, 0, 5, false, NULL, 8020030.25454566, 7986850.89578349, 8053347.448590125, 11995288.669604572, 12002078.872631071, 'in_process', 1.4956662617083993, 1.485116536321324, 1.5062909284909953, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'student_t', 5999991222.716812, 5999885515.59694, 6000096931.699052, 'steps', NULL, 1509, 'bounded', 1488, 1531, 18109067613.938705, 8072049.6900577275, NULL, 43325.415573881604, 10345017140.384192, 6008017140.372782, 15907034280.758879, NULL, NULL, NULL, 26759.521055598136, 12, 997.5024714483706, 993.3757423319089, 1001.6463440207018, 666.9285100467467, 1234567890, 1634567890, 1.3240000029484, 1, 412, 1, 2, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 97, 'pass', false, '2026-11-20 18:19:00+00', '2026-11-20 18:03:00+00', false, 7991508.8, 8042823, 1.4864529438512633, 1.5034366438768205, 994.6771468904193, 1001.0651384662921, 8045384.39, 8093516.58, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5999906199.6, 6000065510.4, 1234567890, 1234567890, NULL, NULL, 10344995217.4, 10345035688.4, 15906990434.8, 15907071376.8, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001', '30c8ae91673fe59c', 'ca9f71320bea57d8', '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', NULL, NULL, NULL, NULL, 'ok', 5, 0, 0, 0, 5, false, NULL, 11975355.654377531, 11901940.50728488, 12049223.650635354, NULL, 11995077.236254685, 'none', 1, 1, 1, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'reference', NULL, NULL, NULL, 'unknown', 'eager is the reference', NULL, 'none', NULL, NULL, NULL, 12096319.562383106, NULL, 71642.52612989108, 2123003785.7647953, 32003757.33561786, 2155007570.6850376, NULL, NULL, NULL, 59274.30395141726, 12, 5344.308916337288, 5311.545528215445, 5377.274399987733, NULL, 1234567890, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, false, '2026-11-21 00:16:00+00', '2026-11-21 00:00:00+00', false, 11912572.9, 12031821.5, NULL, NULL, 5319.227913420688, 5372.48900824026, 12038359, 12158980.17, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1234567890, 1234567890, NULL, NULL, 2122958803.2, 2123055160.4, 2154917606.4, 2155110320.8, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001', '30c8ae91673fe59c', '859e1eff37513887', '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', NULL, NULL, NULL, NULL, 'ok', 5, 0, 0, 0, 5, false, NULL, 11213682.626394331, 11165134.501779096, 11262441.847472692, 12014831.296565294, 11995077.236254685, 'in_process', 1.0714438509509134, 1.0650049971319906, 1.0779216330740349, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'student_t', 5999980000.0544615, 5999921985.465762, 6000038015.204117, 'steps', NULL, 7502, 'bounded', 6918, 8193, 89986713739.31529, 11294088.816612603, NULL, 60798.702230391435, 10348207070.734617, 6011207070.687445, 15913414141.429932, NULL, NULL, NULL, 39189.48568398162, 12, 5707.31330039244, 5682.604258184178, 5732.129782207459, 5326.749782853449, 1234567890, 1634567890, 1.3240000029484, 1, 412, 1, 2, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 97, 'pass', false, '2026-11-21 00:17:00+00', '2026-11-21 00:01:00+00', false, 11175007, 11254701.4, 1.0665307576190692, 1.0765256295389136, 5686.515770718406, 5727.069630939865, 11256000.11, 11348792.69, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5999933887.2, 6000008547.9, 1234567890, 1234567890, NULL, NULL, 10348171597, 10348252719.4, 15913343194, 15913505438.8, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001', '30c8ae91673fe59c', '975737552bb137a1', '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', NULL, NULL, NULL, NULL, 'ok', 5, 0, 0, 0, 5, false, NULL, 11989310.695762966, 11955923.45505989, 12022791.171241757, NULL, 11990200.533587102, 'none', 1, 1, 1, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'reference', NULL, NULL, NULL, 'unknown', 'eager is the reference', NULL, 'none', NULL, NULL, NULL, 12092334.020536613, NULL, 68467.3283429762, 2123005159.7288406, 32005155.077895284, 2155010319.3195877, NULL, NULL, NULL, 26951.009682848617, 12, 667.2610463608394, 665.4028907310491, 669.1243909406517, NULL, 1234567890, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, false, '2026-11-21 00:18:00+00', '2026-11-21 00:02:00+00', false, 11967277.3, 12016526, NULL, NULL, 665.7517950693931, 668.4897166404819, 12072160.16, 12111009.99, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1234567890, 1234567890, NULL, NULL, 2122986262, 2123019664, 2154972524, 2155039328, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001', '30c8ae91673fe59c', '8dc5175709070e63', '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', NULL, NULL, NULL, NULL, 'ok', 5, 0, 0, 0, 5, false, NULL, 11189194.741293717, 11164248.846291635, 11214196.37651496, 11991090.437454345, 11990200.533587102, 'in_process', 1.0716669711003626, 1.0644308113455747, 1.078952323350744, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'student_t', 6000070890.739758, 5999967723.243406, 6000174060.01004, 'steps', NULL, 7483, 'bounded', 6837, 8265, 89722601315.1935, 11294774.224106714, NULL, 65059.780449510705, 10348212839.571346, 6011212839.5506735, 15913425679.125467, NULL, NULL, NULL, 20106.821341276198, 12, 714.9754906379459, 713.381479278693, 716.5730637271951, 667.1620101381176, 1234567890, 1634567890, 1.3240000029484, 1, 412, 1, 2, 0, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, 97, 'pass', false, '2026-11-21 00:19:00+00', '2026-11-21 00:03:00+00', false, 11167661.3, 11207893, 1.066613654119398, 1.0774752006657333, 713.7827073779611, 716.354488045688, 11286438.74, 11306169.12, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 5999981449.5, 6000139303.5, 1234567890, 1234567890, NULL, NULL, 10348188292.4, 10348241974.4, 15913376584.8, 15913483948.8, NULL, NULL, NULL, NULL);


--
-- Data for Name: run_part; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.run_part VALUES
	('01KA8Z7Q3V5T2M9N4R6S8W0XY0', 'dfa299fc7b262385', '30c8ae91673fe59c', 4, '2026-11-20 18:00:00+00', '2026-11-20 18:00:00+00'),
	('run-gpu-box-3-0-0000', 'dfa299fc7b262385', '1215300cfae2a990', 20, '2026-11-20 18:00:00+00', '2026-11-20 18:19:00+00'),
	('run-gpu-box-3-0-0001', 'dfa299fc7b262385', '30c8ae91673fe59c', 20, '2026-11-21 00:00:00+00', '2026-11-21 00:19:00+00');


--
-- Data for Name: run_request; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.run_request VALUES
	('asked', 'manual', 'queued', 20, 0, 0, '{"suite": null, "workloads": ["mlp"], "strategies": ["default"], "cases": [], "builds": [], "stacks": [], "machine": null, "trials": 3, "budget_trials": null, "label": "before the upgrade", "profile": false, "trace": false}', '[]', '[{"at": "2026-11-20T18:00:00Z", "state": "queued", "by": "ann@desk", "note": null}]', 'ann@desk', '2026-11-20 18:00:00+00', false, NULL),
	('fired', 'schedule', 'finished', 0, 1, 1, '{"suite": "standard", "workloads": [], "strategies": [], "cases": [], "builds": [], "stacks": [], "machine": null, "trials": null, "budget_trials": null, "label": null, "profile": false, "trace": false}', '[]', '[{"at": "2026-11-20T18:00:00Z", "state": "queued", "by": "schedule nightly", "note": null}, {"at": "2026-11-20T18:00:00Z", "state": "running", "by": "gpu-box:1:ab", "note": null}, {"at": "2026-11-20T18:00:00Z", "state": "finished", "by": "gpu-box:1:ab", "note": "2 trials, 0 failed"}]', 'schedule nightly', '2026-11-20 18:00:00+00', false, 'gpu-box:1:ab');


--
-- Data for Name: schedule; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.schedule VALUES
	('nightly', '{"cron": "0 2 * * *", "timezone": "UTC", "suite": "standard", "trials": null, "machine": "gpu-box"}', true, false, '2026-11-20 18:00:00+00', '2026-11-21 18:00:00+00', NULL, '["2026-11-21T18:00:00+00:00", "2026-11-22T18:00:00+00:00"]', NULL),
	('weekly', '{"cron": "0 3 * * mon", "timezone": "UTC", "suite": null, "trials": null, "machine": null}', false, true, '2026-11-20 18:00:00+00', NULL, '2026-11-20 18:00:00+00', NULL, 'ann');


--
-- Data for Name: schedule_watch; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.schedule_watch VALUES
	('nightly', '2026-11-20 18:00:00+00', '2026-11-23 18:00:00+00', NULL);


--
-- Data for Name: series; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.series VALUES
	(10, 0, 0, '2026-11-20 18:01:00+00', '2026-11-21 00:17:00+00', '859e1eff37513887', 'dfa299fc7b262385', '3ea8ec7f389b5545', 'f68d398d87f7eb54'),
	(14, 1, 0, '2026-11-20 18:00:00+00', '2026-11-21 00:19:00+00', '8dc5175709070e63', 'dfa299fc7b262385', 'c3b5c864f308f661', 'f68d398d87f7eb54'),
	(10, 0, 0, '2026-11-20 18:02:00+00', '2026-11-21 00:18:00+00', '975737552bb137a1', 'dfa299fc7b262385', 'c3b5c864f308f661', 'c9e1f2305787a00b'),
	(10, 0, 0, '2026-11-20 18:00:00+00', '2026-11-21 00:16:00+00', 'ca9f71320bea57d8', 'dfa299fc7b262385', '3ea8ec7f389b5545', 'c9e1f2305787a00b');


--
-- Data for Name: stored_view; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.stored_view VALUES
	('2scvlvo7y47z', 'page=trends&workload=mlp', '2026-11-20 18:00:00+00', 'ann');


--
-- Data for Name: strategy; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.strategy VALUES
	(20, 0, 0, '2026-11-20 18:00:00+00', '2026-11-21 00:18:00+00', 'c9e1f2305787a00b', 'eager', 'eager', NULL, NULL, NULL, false, 'full', 'none', '{}', '{}'),
	(24, 1, 0, '2026-11-20 18:00:00+00', '2026-11-21 00:19:00+00', 'f68d398d87f7eb54', 'default', 'compile', 'inductor', 'default', NULL, false, 'full', 'cold', '{}', '{}');


--
-- Data for Name: triage_event; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.triage_event VALUES
	('9a33c813c7d5185c', 1, 'confirmed', 'compilewatch', '2026-11-20 18:00:00+00', 'Suspected before, shown by 5 fresh trials a side.', NULL),
	('9a33c813c7d5185c', 2, 'acknowledged', 'ann', '2026-11-20 18:00:00+00', 'see the change of 5 May', NULL),
	('d8c1ffd9e38bf00d', 1, 'confirmed', 'compilewatch', '2026-11-20 18:00:00+00', 'Suspected before, shown by 5 fresh trials a side.', NULL);


--
-- Data for Name: trial; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.trial VALUES
	('01KA8Z7Q3V0000000000000001', 'eb6ba88a4d42237e1e883780a71370cf', '8dc5175709070e63', '30c8ae91673fe59c', '01KA8Z7Q3V5T2M9N4R6S8W0XY0', '2026-11-20 18:00:00+00', '2026-11-20 18:01:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'failed', 'out_of_memory', 'CUDA out of memory. Tried to allocate 20.00 GiB.', NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('01KA8Z7Q3V0000000000000002', 'b59918618d801df67d2bb1714cfae864', '8dc5175709070e63', '30c8ae91673fe59c', '01KA8Z7Q3V5T2M9N4R6S8W0XY0', '2026-11-20 18:00:00+00', '2026-11-20 18:01:12+00', 'standard', NULL, '49a6507115bc728c', 'imported', 'dynamo-csv', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 8000000, NULL, NULL, NULL, NULL, 12000000, 30, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('01KA8Z7Q3V0000000000000003', '21f7cadadf4b2ba0b42378bdcef8d5af', '8dc5175709070e63', '30c8ae91673fe59c', '01KA8Z7Q3V5T2M9N4R6S8W0XY0', '2026-11-20 18:00:00+00', '2026-11-20 18:01:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 8017019.5, 7931540.6, 8072242.85, 8072820.57, 51335.0136940636, 15023947, 12, 12, 'gated', 'gated', 5000798, 2998347.5, 8017019.5, 4992011, 6005524, 9001777.5, 15023947, 8954061.5, NULL, NULL, NULL, 10345000000, 6008000000, 6024000000, 3, 15907000000, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('01KA8Z7Q3V0000000000000004', '81777e27d07eaa666bfb727a492b4608', '8dc5175709070e63', '30c8ae91673fe59c', '01KA8Z7Q3V5T2M9N4R6S8W0XY0', '2026-11-20 18:00:00+00', '2026-11-20 18:01:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, '0123456789abcdef0123456789abcdef01234567', '0000000000000000', true, 1, 8017019.5, 7931540.6, 8072242.85, 8072820.57, 51335.0136940636, 15023947, 12, 12, 'gated', 'gated', 5000798, 2998347.5, 8017019.5, 4992011, 6005524, 9001777.5, 15023947, 8954061.5, NULL, NULL, NULL, 10345000000, 6008000000, 6024000000, 3, 15907000000, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0000', '63f44805f58a097b31a861cf82f5496a', 'ca9f71320bea57d8', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:00:00+00', '2026-11-20 18:01:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 12096785.5, 11943427.4, 12137418.75, 12139986.15, 74588.14995430615, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2123033902, 32033902, 32033902, 1, 2155067804, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0001', 'e4d1f4f6a2ec7633dd3ff444d4441e22', '859e1eff37513887', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:01:00+00', '2026-11-20 18:02:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 8022147, 7988933.8, 8102769.6, 8105316.32, 43240.70056478425, 11967009.5, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10345060265, 6008060265, 6024180795, 3, 15907120530, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0002', '3d0a52bb70d6aa476483a98cb0358ff7', '975737552bb137a1', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:02:00+00', '2026-11-20 18:03:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11981528.5, 11862455.85, 12057128.3, 12061754.46, 71571.65666510646, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2122947904, 31947904, 31947904, 1, 2154895808, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0003', 'b418d82291eaa853bfc38327c56aa597', '8dc5175709070e63', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:03:00+00', '2026-11-20 18:04:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 8030455.5, 7977023.75, 8088074.1, 8093802.02, 38726.267700360695, 11930495.5, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10345022136, 6008022136, 6024066408, 3, 15907044272, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0004', '3ef95cc50f256616511060b0d61938e7', 'ca9f71320bea57d8', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:04:00+00', '2026-11-20 18:05:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11948843, 11856144.45, 12072058.2, 12076034.04, 73878.57785270287, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2122970719, 31970719, 31970719, 1, 2154941438, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0005', '7ef0709cc428f4ba39f463a62b5e2222', '859e1eff37513887', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:05:00+00', '2026-11-20 18:06:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 8003134, 7946697.25, 8064673.9, 8065941.98, 40190.014545583865, 11970987, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10344986587, 6007986587, 6023959761, 3, 15906973174, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0006', '6de2bb24e0c1598bee09ecfaa6ce28f2', '975737552bb137a1', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:06:00+00', '2026-11-20 18:07:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11977086, 11892907.3, 12079317.8, 12083147.56, 67958.17139820552, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2122978509, 31978509, 31978509, 1, 2154957018, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0007', '8c73d920a5d7ddacfb3d28d38cc0ad12', '8dc5175709070e63', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:07:00+00', '2026-11-20 18:08:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 7980968, 7921606.4, 8030123.95, 8043011.99, 37531.36770029232, 12002095, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10344989111, 6007989111, 6023967333, 3, 15906978222, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0008', '2042d92d752261fdbf71ad590d2e2035', 'ca9f71320bea57d8', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:08:00+00', '2026-11-20 18:09:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11999183, 11906945.7, 12067908.6, 12076518.52, 59610.46504498005, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2122979196, 31979196, 31979196, 1, 2154958392, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0009', '378f1b5569da220a7cfeb631b9a3f2b1', '859e1eff37513887', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:09:00+00', '2026-11-20 18:10:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 8036108.5, 7957177.3, 8105855.3, 8106477.46, 52920.63216048304, 11953269, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10345026727, 6008026727, 6024080181, 3, 15907053454, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0010', 'd4fe506a2043c5946667a599835bf142', '975737552bb137a1', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:10:00+00', '2026-11-20 18:11:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 12097411.5, 11957089.9, 12162131.3, 12162163.86, 78025.32467012737, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2123074513, 32074513, 32074513, 1, 2155149026, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0011', '03a284a800dfa73b7328960a2b03d7a5', '8dc5175709070e63', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:11:00+00', '2026-11-20 18:12:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 8007320, 7962403.95, 8076796.8, 8083196.16, 40054.22288333502, 12033659.5, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10345038286, 6008038286, 6024114858, 3, 15907076572, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0012', 'da8cce3f6f3f515be577a8404b19c191', 'ca9f71320bea57d8', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:12:00+00', '2026-11-20 18:13:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11945101.5, 11857269.8, 12056498.35, 12060098.87, 72974.21753709673, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2122948466, 31948466, 31948466, 1, 2154896932, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0013', '639043b2742f7eb8083dca8122375b09', '859e1eff37513887', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:13:00+00', '2026-11-20 18:14:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 8006976.5, 7943455.6, 8069151.05, 8070844.61, 52038.759460151574, 12072126, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10345000814, 6008000814, 6024002442, 3, 15907001628, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0014', '6cd907bb76ee3bce89b75dac647c5410', '975737552bb137a1', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:14:00+00', '2026-11-20 18:15:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 12013290.5, 11955901.25, 12097191.7, 12099543.94, 47746.10951753667, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2123016868, 32016868, 32016868, 1, 2155033736, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0015', 'aec422c38808198b7a0b57a08c940589', '8dc5175709070e63', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:15:00+00', '2026-11-20 18:16:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 8050942, 7926505.9, 8068275.05, 8068807.01, 51604.03328376102, 11976969, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10345004377, 6008004377, 6024013131, 3, 15907008754, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0016', '41298ec6d13dfb3aca56a62b8eaf5aaf', 'ca9f71320bea57d8', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:16:00+00', '2026-11-20 18:17:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 12058399.5, 12002452.05, 12145747.15, 12191906.23, 57463.47103397712, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2123095594, 32095594, 32095594, 1, 2155191188, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0017', '491029e2f09c9331e75514b9583ee56e', '859e1eff37513887', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:17:00+00', '2026-11-20 18:18:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 8027084, 7973566.05, 8089546.4, 8090906.88, 43427.61922833105, 12039730.5, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10345023525, 6008023525, 6024070575, 3, 15907047050, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0018', '64b2cfef9b319007ba3e737a7acd3ab6', '975737552bb137a1', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:18:00+00', '2026-11-20 18:19:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11975493.5, 11822201, 12048588.8, 12049127.36, 81636.41949745001, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2122936836, 31936836, 31936836, 1, 2154873672, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0019', 'f328f47ad0a4c7cf7ca56d4731ce5fbe', '8dc5175709070e63', '1215300cfae2a990', 'run-gpu-box-3-0-0000', '2026-11-20 18:19:00+00', '2026-11-20 18:20:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 8030644.5, 7958805.75, 8097144.9, 8102592.98, 50813.80241060732, 12033538, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10345031792, 6008031792, 6024095376, 3, 15907063584, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0000', 'a2ca04794f34331aa6ef73bde70ba48b', 'ca9f71320bea57d8', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:00:00+00', '2026-11-21 00:01:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11936146, 11850621.35, 12028245.1, 12030470.62, 57138.715278339005, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2122954380, 31954380, 31954380, 1, 2154908760, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0001', '3b010450279d9a4f5b074c81073b6f3a', '859e1eff37513887', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:01:00+00', '2026-11-21 00:02:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11186255.5, 11089642, 11256842.45, 11274698.09, 64065.74181609832, 11998814, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10348189769, 6011189769, 6033569307, 3, 15913379538, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0002', 'b08fccede5984af7afdc0df06383a956', '975737552bb137a1', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:02:00+00', '2026-11-21 00:03:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11962627.5, 11908783.95, 12078463.85, 12107043.17, 64225.81516680741, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2123008603, 32008603, 32008603, 1, 2155017206, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0003', '78fc46932b4d2dcf89125d9f72564a7d', '8dc5175709070e63', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:03:00+00', '2026-11-21 00:04:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11205671.5, 11109426.85, 11286736.7, 11289194.54, 68762.8418873467, 12016927.5, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10348185580, 6011185580, 6033556740, 3, 15913371160, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0004', 'd9539c48a26c7c410d1ea466b7d3f75a', 'ca9f71320bea57d8', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:04:00+00', '2026-11-21 00:05:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 12032900.5, 11964054.3, 12178137.35, 12178200.27, 79768.75193175583, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2123058338, 32058338, 32058338, 1, 2155116676, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0005', '70f0a6e2aced6b6414e748d083170c65', '859e1eff37513887', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:05:00+00', '2026-11-21 00:06:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11261688, 11161778.8, 11358537.65, 11358685.93, 69022.1357115369, 11994591, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10348261051, 6011261051, 6033783153, 3, 15913522102, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0006', '4da115cc19f087995494274bc5b96f66', '975737552bb137a1', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:06:00+00', '2026-11-21 00:07:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11974252, 11923915.95, 12095287.95, 12098117.59, 66478.1449678286, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2123023024, 32023024, 32023024, 1, 2155046048, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0007', '9e0e1485f6fc068c5f3aa0cc69a98240', '8dc5175709070e63', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:07:00+00', '2026-11-21 00:08:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11209374, 11172597.1, 11293797.45, 11317249.89, 48326.25543933524, 11937191, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10348241747, 6011241747, 6033725241, 3, 15913483494, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0008', '981cb44389bea718929d09217880f80d', 'ca9f71320bea57d8', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:08:00+00', '2026-11-21 00:09:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11896857.5, 11854094.5, 12053529.85, 12066673.97, 83893.27908334529, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2122965438, 31965438, 31965438, 1, 2154930876, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0009', '6c4f28484498af3a5b3fbc07bf363b33', '859e1eff37513887', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:09:00+00', '2026-11-21 00:10:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11244221.5, 11153249.1, 11334175.25, 11345863.85, 65208.97078757065, 12016788.5, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10348240222, 6011240222, 6033720666, 3, 15913480444, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0010', '468e60233a330f6c04f08402094a1834', '975737552bb137a1', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:10:00+00', '2026-11-21 00:11:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11985193.5, 11876787.25, 12067957.7, 12071453.94, 73199.64229477718, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2122972214, 31972214, 31972214, 1, 2154944428, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0011', '29133f644a8b82d2ce10b477ddf9e797', '8dc5175709070e63', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:11:00+00', '2026-11-21 00:12:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11160980.5, 11105145, 11292703.35, 11301249.47, 76269.01520217165, 12063465.5, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10348202384, 6011202384, 6033607152, 3, 15913404768, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0012', 'af57f53aa2cc25e9b3b6b366507c01f2', 'ca9f71320bea57d8', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:12:00+00', '2026-11-21 00:13:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11981258.5, 11889260.45, 12092032.95, 12095020.99, 77274.4857387082, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2122990381, 31990381, 31990381, 1, 2154980762, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0013', 'adff9b7ccad9868fda9f2d95ce1841aa', '859e1eff37513887', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:13:00+00', '2026-11-21 00:14:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11167508, 11070013.65, 11255438.55, 11258975.71, 68443.22302125959, 12051044.5, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10348169361, 6011169361, 6033508083, 3, 15913338722, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0014', '10e170b1d5d560d1da18de5718de005b', '975737552bb137a1', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:14:00+00', '2026-11-21 00:15:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11991174.5, 11907358.55, 12105014.25, 12106107.65, 70337.42447718237, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2123014624, 32014624, 32014624, 1, 2155029248, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0015', 'a7b8309dcd776b000f1e4aa183d635a3', '8dc5175709070e63', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:15:00+00', '2026-11-21 00:16:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11192337.5, 11141984.3, 11314416.9, 11325004.18, 66619.3585760994, 11966177.5, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10348242126, 6011242126, 6033726378, 3, 15913484252, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0016', '49b00fe61174b0c7042b9c62b58b70a6', 'ca9f71320bea57d8', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:16:00+00', '2026-11-21 00:17:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 12030203, 11952322.85, 12130244.4, 12153182.48, 63874.5556715851, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2123050394, 32050394, 32050394, 1, 2155100788, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0017', 'a3e0c703f982cf5d6100089ea81944a1', '859e1eff37513887', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:17:00+00', '2026-11-21 00:18:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11209014, 11147636.8, 11265867.5, 11269171.9, 42093.93202464525, 12013001, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10348174951, 6011174951, 6033524853, 3, 15913349902, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0018', '8f14dbd78c13f480970e840e8d8207f1', '975737552bb137a1', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:18:00+00', '2026-11-21 00:19:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 12033427, 11929109.35, 12115007.15, 12116955.03, 68443.61980508284, NULL, 12, NULL, 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 2123007334, 32007334, 32007334, 1, 2155014668, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, false, 0.006, NULL, NULL, NULL, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0019', 'ef1ffee83bf50e5f268347eac9c41120', '8dc5175709070e63', '30c8ae91673fe59c', 'run-gpu-box-3-0-0001', '2026-11-21 00:19:00+00', '2026-11-21 00:20:12+00', 'standard', NULL, '49a6507115bc728c', 'measured', 'compilewatch 0.1.0', 'gpu-box-3', 'GPU-6e1f0b1c-0000-4000-8000-0123456789ab', NULL, 'ok', NULL, NULL, NULL, NULL, NULL, 1, 11177682.5, 11093150.65, 11286240.1, 11300460.02, 69036.28593734404, 11972098.5, 12, 12, 'ungated', 'ungated', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 10348192361, 6011192361, 6033577083, 3, 15913384722, NULL, NULL, 1234567890, 1334567890, 1534567890, 3234567890, 1634567890, 1, 412, 1, 2, 1, NULL, 'pass', false, 0.006, 0, 0, 0, NULL, NULL, NULL, 97, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: trial_detail; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.trial_detail VALUES
	('01KA8Z7Q3V0000000000000001', '{"kind": "out_of_memory", "phase": "first_call", "message": "CUDA out of memory. Tried to allocate 20.00 GiB.", "log_tail": "Traceback (most recent call last):\n  ...\nRuntimeError: see above\n", "exit_code": 1}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('01KA8Z7Q3V0000000000000002', NULL, NULL, '{"latency_ns": 8000000, "control_latency_ns": 12000000, "n": 30}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	('01KA8Z7Q3V0000000000000003', NULL, '{"total_ns": 10345000000, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6008000000, "calls_until_steady": 3, "until_steady_ns": 6024000000, "process_tree_cpu_ns": 15907000000, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 8000000}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, '{"headline": "wall_sync", "flush_l2": true, "side": {"method": "gated", "gate": {"kind": "spin_kernel", "steps": 1, "samples": 12, "verified": 11, "retries": 2}, "launches": 9.0, "synchronises": false, "streams": 1, "pipelined_steps": 20, "sm_clock_mhz": [1830.0, 1980.0, 1980.0]}, "control": {"method": "gated", "gate": {"kind": "spin_kernel", "steps": 1, "samples": 12, "verified": 11, "retries": 2}, "launches": 9.0, "synchronises": false, "streams": 1, "pipelined_steps": 20, "sm_clock_mhz": [1830.0, 1980.0, 1980.0]}}', NULL),
	('01KA8Z7Q3V0000000000000004', NULL, '{"total_ns": 10345000000, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6008000000, "calls_until_steady": 3, "until_steady_ns": 6024000000, "process_tree_cpu_ns": 15907000000, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 8000000}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, '{"headline": "wall_sync", "flush_l2": true, "side": {"method": "gated", "gate": {"kind": "spin_kernel", "steps": 1, "samples": 12, "verified": 11, "retries": 2}, "launches": 9.0, "synchronises": false, "streams": 1, "pipelined_steps": 20, "sm_clock_mhz": [1830.0, 1980.0, 1980.0]}, "control": {"method": "gated", "gate": {"kind": "spin_kernel", "steps": 1, "samples": 12, "verified": 11, "retries": 2}, "launches": 9.0, "synchronises": false, "streams": 1, "pipelined_steps": 20, "sm_clock_mhz": [1830.0, 1980.0, 1980.0]}}', '{"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": true, "source_hash": "0000000000000000"}'),
	('run-gpu-box-3-0-0000-0000', NULL, '{"total_ns": 2123033902, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 32033902, "calls_until_steady": 1, "until_steady_ns": 32033902, "process_tree_cpu_ns": 2155067804}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0001', NULL, '{"total_ns": 10345060265, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6008060265, "calls_until_steady": 3, "until_steady_ns": 6024180795, "process_tree_cpu_ns": 15907120530, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 8060265}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0002', NULL, '{"total_ns": 2122947904, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 31947904, "calls_until_steady": 1, "until_steady_ns": 31947904, "process_tree_cpu_ns": 2154895808}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0003', NULL, '{"total_ns": 10345022136, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6008022136, "calls_until_steady": 3, "until_steady_ns": 6024066408, "process_tree_cpu_ns": 15907044272, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 8022136}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0004', NULL, '{"total_ns": 2122970719, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 31970719, "calls_until_steady": 1, "until_steady_ns": 31970719, "process_tree_cpu_ns": 2154941438}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0005', NULL, '{"total_ns": 10344986587, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6007986587, "calls_until_steady": 3, "until_steady_ns": 6023959761, "process_tree_cpu_ns": 15906973174, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 7986587}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0006', NULL, '{"total_ns": 2122978509, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 31978509, "calls_until_steady": 1, "until_steady_ns": 31978509, "process_tree_cpu_ns": 2154957018}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0007', NULL, '{"total_ns": 10344989111, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6007989111, "calls_until_steady": 3, "until_steady_ns": 6023967333, "process_tree_cpu_ns": 15906978222, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 7989111}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0008', NULL, '{"total_ns": 2122979196, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 31979196, "calls_until_steady": 1, "until_steady_ns": 31979196, "process_tree_cpu_ns": 2154958392}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0009', NULL, '{"total_ns": 10345026727, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6008026727, "calls_until_steady": 3, "until_steady_ns": 6024080181, "process_tree_cpu_ns": 15907053454, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 8026727}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0010', NULL, '{"total_ns": 2123074513, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 32074513, "calls_until_steady": 1, "until_steady_ns": 32074513, "process_tree_cpu_ns": 2155149026}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0011', NULL, '{"total_ns": 10345038286, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6008038286, "calls_until_steady": 3, "until_steady_ns": 6024114858, "process_tree_cpu_ns": 15907076572, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 8038286}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0012', NULL, '{"total_ns": 2122948466, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 31948466, "calls_until_steady": 1, "until_steady_ns": 31948466, "process_tree_cpu_ns": 2154896932}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0013', NULL, '{"total_ns": 10345000814, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6008000814, "calls_until_steady": 3, "until_steady_ns": 6024002442, "process_tree_cpu_ns": 15907001628, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 8000814}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0014', NULL, '{"total_ns": 2123016868, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 32016868, "calls_until_steady": 1, "until_steady_ns": 32016868, "process_tree_cpu_ns": 2155033736}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0015', NULL, '{"total_ns": 10345004377, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6008004377, "calls_until_steady": 3, "until_steady_ns": 6024013131, "process_tree_cpu_ns": 15907008754, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 8004377}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0016', NULL, '{"total_ns": 2123095594, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 32095594, "calls_until_steady": 1, "until_steady_ns": 32095594, "process_tree_cpu_ns": 2155191188}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0017', NULL, '{"total_ns": 10345023525, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6008023525, "calls_until_steady": 3, "until_steady_ns": 6024070575, "process_tree_cpu_ns": 15907047050, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 8023525}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0018', NULL, '{"total_ns": 2122936836, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 31936836, "calls_until_steady": 1, "until_steady_ns": 31936836, "process_tree_cpu_ns": 2154873672}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0000-0019', NULL, '{"total_ns": 10345031792, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6008031792, "calls_until_steady": 3, "until_steady_ns": 6024095376, "process_tree_cpu_ns": 15907063584, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 8031792}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0000', NULL, '{"total_ns": 2122954380, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 31954380, "calls_until_steady": 1, "until_steady_ns": 31954380, "process_tree_cpu_ns": 2154908760}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0001', NULL, '{"total_ns": 10348189769, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6011189769, "calls_until_steady": 3, "until_steady_ns": 6033569307, "process_tree_cpu_ns": 15913379538, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 11189769}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0002', NULL, '{"total_ns": 2123008603, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 32008603, "calls_until_steady": 1, "until_steady_ns": 32008603, "process_tree_cpu_ns": 2155017206}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0003', NULL, '{"total_ns": 10348185580, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6011185580, "calls_until_steady": 3, "until_steady_ns": 6033556740, "process_tree_cpu_ns": 15913371160, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 11185580}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0004', NULL, '{"total_ns": 2123058338, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 32058338, "calls_until_steady": 1, "until_steady_ns": 32058338, "process_tree_cpu_ns": 2155116676}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0005', NULL, '{"total_ns": 10348261051, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6011261051, "calls_until_steady": 3, "until_steady_ns": 6033783153, "process_tree_cpu_ns": 15913522102, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 11261051}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0006', NULL, '{"total_ns": 2123023024, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 32023024, "calls_until_steady": 1, "until_steady_ns": 32023024, "process_tree_cpu_ns": 2155046048}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0007', NULL, '{"total_ns": 10348241747, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6011241747, "calls_until_steady": 3, "until_steady_ns": 6033725241, "process_tree_cpu_ns": 15913483494, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 11241747}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0008', NULL, '{"total_ns": 2122965438, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 31965438, "calls_until_steady": 1, "until_steady_ns": 31965438, "process_tree_cpu_ns": 2154930876}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0009', NULL, '{"total_ns": 10348240222, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6011240222, "calls_until_steady": 3, "until_steady_ns": 6033720666, "process_tree_cpu_ns": 15913480444, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 11240222}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0010', NULL, '{"total_ns": 2122972214, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 31972214, "calls_until_steady": 1, "until_steady_ns": 31972214, "process_tree_cpu_ns": 2154944428}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0011', NULL, '{"total_ns": 10348202384, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6011202384, "calls_until_steady": 3, "until_steady_ns": 6033607152, "process_tree_cpu_ns": 15913404768, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 11202384}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0012', NULL, '{"total_ns": 2122990381, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 31990381, "calls_until_steady": 1, "until_steady_ns": 31990381, "process_tree_cpu_ns": 2154980762}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0013', NULL, '{"total_ns": 10348169361, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6011169361, "calls_until_steady": 3, "until_steady_ns": 6033508083, "process_tree_cpu_ns": 15913338722, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 11169361}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0014', NULL, '{"total_ns": 2123014624, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 32014624, "calls_until_steady": 1, "until_steady_ns": 32014624, "process_tree_cpu_ns": 2155029248}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0015', NULL, '{"total_ns": 10348242126, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6011242126, "calls_until_steady": 3, "until_steady_ns": 6033726378, "process_tree_cpu_ns": 15913484252, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 11242126}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0016', NULL, '{"total_ns": 2123050394, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 32050394, "calls_until_steady": 1, "until_steady_ns": 32050394, "process_tree_cpu_ns": 2155100788}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0017', NULL, '{"total_ns": 10348174951, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6011174951, "calls_until_steady": 3, "until_steady_ns": 6033524853, "process_tree_cpu_ns": 15913349902, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 11174951}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0018', NULL, '{"total_ns": 2123007334, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 0, "build_model_ns": 31000000, "first_call_ns": 32007334, "calls_until_steady": 1, "until_steady_ns": 32007334, "process_tree_cpu_ns": 2155014668}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890}', NULL, NULL, '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL),
	('run-gpu-box-3-0-0001-0019', NULL, '{"total_ns": 10348192361, "interpreter_ns": 60000000, "import_torch_ns": 2000000000, "import_libraries_ns": 0, "import_compile_stack_ns": 1800000000, "build_model_ns": 31000000, "eager_first_ns": 446000000, "first_call_ns": 6011192361, "calls_until_steady": 3, "until_steady_ns": 6033577083, "process_tree_cpu_ns": 15913384722, "phase_source": "calculate_time_spent", "phases_ns": {"dynamo": 600000000, "aot_autograd": 600000000, "inductor": 3000000000, "kernel_compile": 1800000000, "isa_probe": 0, "autotune": 0, "backward": 0, "cudagraph_capture": 0, "other": 11192361}}', NULL, '{"peak_bytes": 1234567890, "peak_reserved_bytes": 1334567890, "peak_with_compile_bytes": 1534567890, "peak_rss_bytes": 3234567890, "control_peak_bytes": 1634567890}', '{"graphs": 1, "ops_captured": 412, "graph_breaks": [{"reason": "call to print", "location": "model.py:31"}], "recompiles": [{"reason": "size mismatch at index 1", "location": "model.py:12", "count": 2}], "skipped_frames": [], "recompile_limit_hit": false, "cudagraph_skips": [], "cudagraph_launches": 0}', '{"status": "pass", "reference": "float64", "cosine_similarity": 0.99999, "max_abs_error": 0.0004, "rmse_reference": 0.0001, "rmse_result": 0.0001, "multiplier": 2.0, "tolerance": 0.01}', '{"sm_clock_mhz": [1980.0, 1980.0, 1980.0], "memory_clock_mhz": [3201.0, 3201.0, 3201.0], "temperature_c": [41.0, 55.0, 58.0], "power_w": [180.0, 410.0, 520.0], "utilization_percent": 97.0, "throttle_reasons": [], "other_processes": 0, "energy_mj": 91234, "suspect": false, "suspect_reasons": []}', '{"cpu_stall_fraction": 0.006, "cpu_over_wall": 0.98, "canary_ns": [551000, 552000], "blocks": 12, "blocks_rejected": 0}', NULL, NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: trial_samples; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.trial_samples VALUES
	('01KA8Z7Q3V0000000000000003', 'control_device_ns', 12, 'offset-planes', '\x3cee5a0000000000bcefdf8023f33500f4891486c07dc3153236e700a84e2a73000000000101000000000001'),
	('01KA8Z7Q3V0000000000000003', 'control_issue_ns', 12, 'offset-planes', '\xde36880000000000e669a83be5d3a9c2b5620026fb474705225a3f2578eb0093000102010101000101010000'),
	('01KA8Z7Q3V0000000000000003', 'control_wall_pipelined_ns', 12, 'offset-planes', '\x3e50880000000000904471a3088febc38e0007d95a8685f927460b42a8001a3a000101010000000001000100'),
	('01KA8Z7Q3V0000000000000003', 'control_wall_sync_ns', 12, 'offset-planes', '\x8aa4e2000000000069c0396200706ce6901b67421ff5009a00aa34a81cb481fa020203000001010303020202'),
	('01KA8Z7Q3V0000000000000003', 'control_warmup_ns', 1, 'offset-planes', '\x00366e0100000000'),
	('01KA8Z7Q3V0000000000000003', 'device_ns', 12, 'offset-planes', '\x14ed4b0000000000b6ef25009309085708be9701e4c23f006239cd11557efd60'),
	('01KA8Z7Q3V0000000000000003', 'issue_ns', 12, 'offset-planes', '\x35582d0000000000d9f95d2379b413365b003dc918bfac356d6292b20f00bd5e'),
	('01KA8Z7Q3V0000000000000003', 'wall_pipelined_ns', 12, 'offset-planes', '\x158d4b0000000000cf725fc3477400fe2a64c78d57cf8be6ef14004160567fb2000000000000000100000100'),
	('01KA8Z7Q3V0000000000000003', 'wall_sync_ns', 12, 'offset-planes', '\xd8fc7800000000002d0c00b4d8a33d3e5fe8e9a5322d0011e6a87f9d5757473f020200000101010001010100'),
	('01KA8Z7Q3V0000000000000003', 'warmup_ns', 2, 'offset-planes', '\x00478600000000000000910032000500'),
	('01KA8Z7Q3V0000000000000004', 'control_device_ns', 12, 'offset-planes', '\x3cee5a0000000000bcefdf8023f33500f4891486c07dc3153236e700a84e2a73000000000101000000000001'),
	('01KA8Z7Q3V0000000000000004', 'control_issue_ns', 12, 'offset-planes', '\xde36880000000000e669a83be5d3a9c2b5620026fb474705225a3f2578eb0093000102010101000101010000'),
	('01KA8Z7Q3V0000000000000004', 'control_wall_pipelined_ns', 12, 'offset-planes', '\x3e50880000000000904471a3088febc38e0007d95a8685f927460b42a8001a3a000101010000000001000100'),
	('01KA8Z7Q3V0000000000000004', 'control_wall_sync_ns', 12, 'offset-planes', '\x8aa4e2000000000069c0396200706ce6901b67421ff5009a00aa34a81cb481fa020203000001010303020202'),
	('01KA8Z7Q3V0000000000000004', 'control_warmup_ns', 1, 'offset-planes', '\x00366e0100000000'),
	('01KA8Z7Q3V0000000000000004', 'device_ns', 12, 'offset-planes', '\x14ed4b0000000000b6ef25009309085708be9701e4c23f006239cd11557efd60'),
	('01KA8Z7Q3V0000000000000004', 'issue_ns', 12, 'offset-planes', '\x35582d0000000000d9f95d2379b413365b003dc918bfac356d6292b20f00bd5e'),
	('01KA8Z7Q3V0000000000000004', 'wall_pipelined_ns', 12, 'offset-planes', '\x158d4b0000000000cf725fc3477400fe2a64c78d57cf8be6ef14004160567fb2000000000000000100000100'),
	('01KA8Z7Q3V0000000000000004', 'wall_sync_ns', 12, 'offset-planes', '\xd8fc7800000000002d0c00b4d8a33d3e5fe8e9a5322d0011e6a87f9d5757473f020200000101010001010100'),
	('01KA8Z7Q3V0000000000000004', 'warmup_ns', 2, 'offset-planes', '\x00478600000000000000910032000500'),
	('run-gpu-box-3-0-0000-0000', 'samples_ns', 12, 'offset-planes', '\x6b25b60000000000b81e253ce9a428002026a2722c0451c91a018e004ce8d8be000302010303020001020002'),
	('run-gpu-box-3-0-0000-0000', 'warmup_ns', 2, 'offset-planes', '\x2cfcc90000000000f9007c00d1000700'),
	('run-gpu-box-3-0-0000-0001', 'control_samples_ns', 12, 'offset-planes', '\xa6d4b5000000000019feca8077da005fe0f6919b3b008cdcaea800ec0b5c6a6e010101000000000202000000'),
	('run-gpu-box-3-0-0000-0001', 'control_warmup_ns', 1, 'offset-planes', '\x9fed6e0100000000'),
	('run-gpu-box-3-0-0000-0001', 'samples_ns', 12, 'offset-planes', '\xc0e579000000000030badc00a5ba84348521cc11649c010051433283b3ca683d000000000000010101010001'),
	('run-gpu-box-3-0-0000-0001', 'warmup_ns', 2, 'offset-planes', '\xf349870000000000f80096003c000500'),
	('run-gpu-box-3-0-0000-0002', 'samples_ns', 12, 'offset-planes', '\x92adb40000000000001b65172d8bff25eba27ce2003afea8639798df212803c7000300010301000202020302'),
	('run-gpu-box-3-0-0000-0002', 'warmup_ns', 2, 'offset-planes', '\xa68ac8000000000055002f00c3000700'),
	('run-gpu-box-3-0-0000-0003', 'control_samples_ns', 12, 'offset-planes', '\x7258b50000000000e2fe0e009075720d0b73c71a494368005e0660fe4d2e692f000300000000030001000202'),
	('run-gpu-box-3-0-0000-0003', 'control_warmup_ns', 1, 'offset-planes', '\xca006e0100000000'),
	('run-gpu-box-3-0-0000-0003', 'samples_ns', 12, 'offset-planes', '\xd1af7900000000006831de0057c9b221845589e4b0d61f00a3e35847ce0f6fa5000101000100000100000100'),
	('run-gpu-box-3-0-0000-0003', 'warmup_ns', 2, 'offset-planes', '\x1ea686000000000081003f0036000500'),
	('run-gpu-box-3-0-0000-0004', 'samples_ns', 12, 'offset-planes', '\x40e8b40000000000ce4a0058a17b8c0f1ddda49ae372003c430163fe9fcd5f77010100030100010002000302'),
	('run-gpu-box-3-0-0000-0004', 'warmup_ns', 2, 'offset-planes', '\xafecc80000000000c800fa00c6000700'),
	('run-gpu-box-3-0-0000-0005', 'control_samples_ns', 12, 'offset-planes', '\x9400b50000000000f2f052aa9acc5066bc840045091e350b5ba83033ae460029030102020300010300010003'),
	('run-gpu-box-3-0-0000-0005', 'control_warmup_ns', 1, 'offset-planes', '\x65a56d0100000000'),
	('run-gpu-box-3-0-0000-0005', 'samples_ns', 12, 'offset-planes', '\x972379000000000017af371f00c0e816fa3c3ae7d6781fcb00c63a51e5f18236000001000000010101010100'),
	('run-gpu-box-3-0-0000-0005', 'warmup_ns', 2, 'offset-planes', '\x5d0d860000000000e300550030000500'),
	('run-gpu-box-3-0-0000-0006', 'samples_ns', 12, 'offset-planes', '\xd46db50000000000b6b8d015a44fb55900b5e98413a46e873769f59d00d3dc38000201000102020100020001'),
	('run-gpu-box-3-0-0000-0006', 'warmup_ns', 2, 'offset-planes', '\x280ec9000000000078004600c8000700'),
	('run-gpu-box-3-0-0000-0007', 'control_samples_ns', 12, 'offset-planes', '\x6593b500000000007aca91a5b20067adbf710490a03bf2cc4c003094e27540df020200020200020000000101'),
	('run-gpu-box-3-0-0000-0007', 'control_warmup_ns', 1, 'offset-planes', '\x914c6e0100000000'),
	('run-gpu-box-3-0-0000-0007', 'samples_ns', 12, 'offset-planes', '\x8acd78000000000028eb9558a7a70d1000a58da32140fa7ef9d812f90086cc7b000100010000010100010000'),
	('run-gpu-box-3-0-0000-0007', 'warmup_ns', 2, 'offset-planes', '\x36188600000000006100c10030000500'),
	('run-gpu-box-3-0-0000-0008', 'samples_ns', 12, 'offset-planes', '\x1d76b5000000000032b5c29d0001e8c47caa5a37d8068b0f002385a3bd5a684f020202010001010001020002'),
	('run-gpu-box-3-0-0000-0008', 'warmup_ns', 2, 'offset-planes', '\x1c11c90000000000b8006300c8000700'),
	('run-gpu-box-3-0-0000-0009', 'control_samples_ns', 12, 'offset-planes', '\xaf45b500000000000b612b00f249c700c569f80f1256e7605c3fb5004a636e5c020100030103000000000200'),
	('run-gpu-box-3-0-0000-0009', 'control_warmup_ns', 1, 'offset-planes', '\x4df36d0100000000'),
	('run-gpu-box-3-0-0000-0009', 'samples_ns', 12, 'offset-planes', '\x2d5d79000000000078c500e3d6fab5a2295ce285956b00d34f17a218895589bd000100010201000000020101'),
	('run-gpu-box-3-0-0000-0009', 'warmup_ns', 2, 'offset-planes', '\xd8b9860000000000fa00020037000500'),
	('run-gpu-box-3-0-0000-0010', 'samples_ns', 12, 'offset-planes', '\xd66ab60000000000a393951b5c00e3b3c8a68a04d729c9382900672d2f290fed000201020300020002030002'),
	('run-gpu-box-3-0-0000-0010', 'warmup_ns', 2, 'offset-planes', '\xadaaca000000000024003e00d8000700'),
	('run-gpu-box-3-0-0000-0011', 'control_samples_ns', 12, 'offset-planes', '\x7705b6000000000066360046d2f246c370b26ac32576005c8ed5135bb76ce9d5010000010001010202020201'),
	('run-gpu-box-3-0-0000-0011', 'control_warmup_ns', 1, 'offset-planes', '\xd85f6f0100000000'),
	('run-gpu-box-3-0-0000-0011', 'samples_ns', 12, 'offset-planes', '\xf67d790000000000f72093b9460100433576e7254f6e22d4dfaa00b76ba6d402010000000100000000010000'),
	('run-gpu-box-3-0-0000-0011', 'warmup_ns', 2, 'offset-planes', '\x83eb8600000000002600ef0038000500'),
	('run-gpu-box-3-0-0000-0012', 'samples_ns', 12, 'offset-planes', '\x7ce8b40000000000a1004e8b4fd4cbcd0c7882317500e884240020ae093042ef010001020203030000000100'),
	('run-gpu-box-3-0-0000-0012', 'warmup_ns', 2, 'offset-planes', '\x108dc8000000000044004700c3000700'),
	('run-gpu-box-3-0-0000-0013', 'control_samples_ns', 12, 'offset-planes', '\xd7f2b50000000000b96a84337a9dcf00eff231dbd42ccd594a1449009a466ff2020301030102030000010202'),
	('run-gpu-box-3-0-0000-0013', 'control_warmup_ns', 1, 'offset-planes', '\x462f6f0100000000'),
	('run-gpu-box-3-0-0000-0013', 'samples_ns', 12, 'offset-planes', '\xa6117900000000001abbbe7a1cb580c4000b2a5b9b8e16a8510740710098c2fa010102000002000000000101'),
	('run-gpu-box-3-0-0000-0013', 'warmup_ns', 2, 'offset-planes', '\x804a860000000000ab00b30032000500'),
	('run-gpu-box-3-0-0000-0014', 'samples_ns', 12, 'offset-planes', '\x5648b60000000000d3297fcee509004137e8ec0145856659659d00d0b63c443e000001020100000000010201'),
	('run-gpu-box-3-0-0000-0014', 'warmup_ns', 2, 'offset-planes', '\xfbb2c90000000000b300a700ce000700'),
	('run-gpu-box-3-0-0000-0015', 'control_samples_ns', 12, 'offset-planes', '\xb907b5000000000094460bf75600237f80739c0c182a40b19f0090a14346245a020102000000030201030201'),
	('run-gpu-box-3-0-0000-0015', 'control_warmup_ns', 1, 'offset-planes', '\xbba26d0100000000'),
	('run-gpu-box-3-0-0000-0015', 'samples_ns', 12, 'offset-planes', '\xc8ef780000000000b2077babcb84540018b2fe5a0514f2042a2ff000e2f726a9000201010202010001010101'),
	('run-gpu-box-3-0-0000-0015', 'warmup_ns', 2, 'offset-planes', '\xcf5986000000000062004b0033000500'),
	('run-gpu-box-3-0-0000-0016', 'samples_ns', 12, 'offset-planes', '\x810bb70000000000176a6535d82b3d97ad0088357f90dda6093d412d7600322a010100000100000001000103'),
	('run-gpu-box-3-0-0000-0016', 'warmup_ns', 2, 'offset-planes', '\x4105cb0000000000b500bf00db000700'),
	('run-gpu-box-3-0-0000-0017', 'control_samples_ns', 12, 'offset-planes', '\x7b0bb600000000003f78e0b9f6977f408d0086793850e890c80d91d02300768c020000000103020101000201'),
	('run-gpu-box-3-0-0000-0017', 'control_warmup_ns', 1, 'offset-planes', '\x54176f0100000000'),
	('run-gpu-box-3-0-0000-0017', 'samples_ns', 12, 'offset-planes', '\xbe92790000000000ab051700267ddde89d79a3b170ede5009ba86539d7242be3000000000001010001010001'),
	('run-gpu-box-3-0-0000-0017', 'warmup_ns', 2, 'offset-planes', '\x15ac860000000000a4007a0036000500'),
	('run-gpu-box-3-0-0000-0018', 'samples_ns', 12, 'offset-planes', '\xbe63b4000000000000565415d4a654b08fe83b9500ccc2964c280177ce726285000201020203000301030200'),
	('run-gpu-box-3-0-0000-0018', 'warmup_ns', 2, 'offset-planes', '\x185bc8000000000019005800c1000700'),
	('run-gpu-box-3-0-0000-0019', 'control_samples_ns', 12, 'offset-planes', '\xd6c8b500000000001bc3a2d2b500800759f186c59aa253a77c00510b3ca70281010101010200020201020202'),
	('run-gpu-box-3-0-0000-0019', 'control_warmup_ns', 1, 'offset-planes', '\xdddf6d0100000000'),
	('run-gpu-box-3-0-0000-0019', 'samples_ns', 12, 'offset-planes', '\x5c55790000000000b7e44d94f4d320246900bd5952ed63f634a385c032003322020000010100010100000102'),
	('run-gpu-box-3-0-0000-0019', 'warmup_ns', 2, 'offset-planes', '\x9ccf860000000000a700da0037000500'),
	('run-gpu-box-3-0-0001-0000', 'samples_ns', 12, 'offset-planes', '\x0ec9b4000000000025c0463f00cff963c2401c22cbf56926002312b7470ea2fe020101010001000201010101'),
	('run-gpu-box-3-0-0001-0000', 'warmup_ns', 2, 'offset-planes', '\x7aa6c8000000000014004300c4000700'),
	('run-gpu-box-3-0-0001-0001', 'control_samples_ns', 12, 'offset-planes', '\x5501b60000000000c40031f2c24ed142172d9223330006495df699803c6ccc27010000000100010100010003'),
	('run-gpu-box-3-0-0001-0001', 'control_warmup_ns', 1, 'offset-planes', '\x1cf56e0100000000'),
	('run-gpu-box-3-0-0001-0001', 'samples_ns', 12, 'offset-planes', '\x7c15a9000000000039002ec8f48abe7979d3b0536700a63ccd5805428f90f742020001000002030201000002'),
	('run-gpu-box-3-0-0001-0001', 'warmup_ns', 2, 'offset-planes', '\x0ad1bb00000000006800170045000700'),
	('run-gpu-box-3-0-0001-0002', 'samples_ns', 12, 'offset-planes', '\x6696b50000000000612ba6cf001e95ed10d5b5a6700aa17700ccfd44db323a42010100000000010200020003'),
	('run-gpu-box-3-0-0001-0002', 'warmup_ns', 2, 'offset-planes', '\x778fc90000000000cc004700cd000700'),
	('run-gpu-box-3-0-0001-0003', 'control_samples_ns', 12, 'offset-planes', '\x53ceb50000000000fba6d2008d25d94a7a8bc7ce43f0a800a53ac16ba6ce74fa010201000201010002020100'),
	('run-gpu-box-3-0-0001-0003', 'control_warmup_ns', 1, 'offset-planes', '\xee476e0100000000'),
	('run-gpu-box-3-0-0001-0003', 'samples_ns', 12, 'offset-planes', '\x500ba90000000000818609808d5800af2244cb873914f35204390023ddfcdb01030300020202000301000001'),
	('run-gpu-box-3-0-0001-0003', 'warmup_ns', 2, 'offset-planes', '\x0bbfbb00000000000b00650044000700'),
	('run-gpu-box-3-0-0001-0004', 'samples_ns', 12, 'offset-planes', '\x064fb600000000002282e84389937bcbaa469200840978aa9c838fb0f6a37300030100000203010200010000'),
	('run-gpu-box-3-0-0001-0004', 'warmup_ns', 2, 'offset-planes', '\x2c65ca000000000071008d00d5000700'),
	('run-gpu-box-3-0-0001-0005', 'control_samples_ns', 12, 'offset-planes', '\x570ab50000000000c13ebdf8bc15507500b2a5c0b8246c1e000bfda500bb8df9000002020202010200000101'),
	('run-gpu-box-3-0-0001-0005', 'control_warmup_ns', 1, 'offset-planes', '\xaeb96c0100000000'),
	('run-gpu-box-3-0-0001-0005', 'samples_ns', 12, 'offset-planes', '\x8d40aa0000000000ed6057b3c0e4255c84007676aeab443abfe1101d84008111010100010100030002000103'),
	('run-gpu-box-3-0-0001-0005', 'warmup_ns', 2, 'offset-planes', '\x5403bd00000000006e00f20050000700'),
	('run-gpu-box-3-0-0001-0006', 'samples_ns', 12, 'offset-planes', '\xcbecb5000000000014df19e8a0005a9b3f3e1f1b707409ad3700e5f80eb097f9000000000000000102020201'),
	('run-gpu-box-3-0-0001-0006', 'warmup_ns', 2, 'offset-planes', '\x6ecdc90000000000d000ad00cf000700'),
	('run-gpu-box-3-0-0001-0007', 'control_samples_ns', 12, 'offset-planes', '\x4587b400000000000a004957e4b3bf1e529c72832f0051f0301a5140ce1e6ef2020001000201030301010101'),
	('run-gpu-box-3-0-0001-0007', 'control_warmup_ns', 1, 'offset-planes', '\xbf516c0100000000'),
	('run-gpu-box-3-0-0001-0007', 'samples_ns', 12, 'offset-planes', '\x1f32aa000000000083c3956e370006adca8ee970899dc484b7009a9394dd98d3000001000100010102000000'),
	('run-gpu-box-3-0-0001-0007', 'warmup_ns', 2, 'offset-planes', '\x62b0bc00000000008600bc004d000700'),
	('run-gpu-box-3-0-0001-0008', 'samples_ns', 12, 'offset-planes', '\xb8cfb400000000008732860032919006df65de8de4691f003d075c2ae7cc2c30010000000201030002020000'),
	('run-gpu-box-3-0-0001-0008', 'warmup_ns', 2, 'offset-planes', '\xfed5c80000000000ef001900c6000700'),
	('run-gpu-box-3-0-0001-0009', 'control_samples_ns', 12, 'offset-planes', '\xe9c9b50000000000021dbf24a768790016a441230c87b55013a0ed007720ae52010002030202010001000101'),
	('run-gpu-box-3-0-0001-0009', 'control_warmup_ns', 1, 'offset-planes', '\xaff56e0100000000'),
	('run-gpu-box-3-0-0001-0009', 'samples_ns', 12, 'offset-planes', '\x710caa000000000009fc8600b20670ffc1eee7bbb0b63f007363a4521e72989a010200000101020103020100'),
	('run-gpu-box-3-0-0001-0009', 'warmup_ns', 2, 'offset-planes', '\xd5a9bc000000000098007b004d000700'),
	('run-gpu-box-3-0-0001-0010', 'samples_ns', 12, 'offset-planes', '\xd7f7b40000000000b1bda7195b4af08ec7bf4e003d321ee7d0020b0f8577b100030203000102010302000000'),
	('run-gpu-box-3-0-0001-0010', 'warmup_ns', 2, 'offset-planes', '\x1cf3c800000000006f003a00c7000700'),
	('run-gpu-box-3-0-0001-0011', 'control_samples_ns', 12, 'offset-planes', '\x25cbb600000000008e7cae5efc9062d2008d81cf184c31dbc0db357c00ceb0e5000200010002000000010201'),
	('run-gpu-box-3-0-0001-0011', 'control_warmup_ns', 1, 'offset-planes', '\xa7fd6f0100000000'),
	('run-gpu-box-3-0-0001-0011', 'samples_ns', 12, 'offset-planes', '\x295ea9000000000019006bd2b1fac0e04d31d2057f00c0cf1ba526c9bc54d40a000001020302000200000001'),
	('run-gpu-box-3-0-0001-0011', 'warmup_ns', 2, 'offset-planes', '\x3e07bc00000000007c00300047000700'),
	('run-gpu-box-3-0-0001-0012', 'samples_ns', 12, 'offset-planes', '\xb921b5000000000074d3d8002f4ef0ec5a5fc99ea09d540084f9d56a036f5c25000203000002000202030101'),
	('run-gpu-box-3-0-0001-0012', 'warmup_ns', 2, 'offset-planes', '\x2b41c90000000000ef003f00ca000700'),
	('run-gpu-box-3-0-0001-0013', 'control_samples_ns', 12, 'offset-planes', '\xff50b60000000000243ca60b508fb014cf00ea546f9c1770c686d0d9430022c6010102010001000103000202'),
	('run-gpu-box-3-0-0001-0013', 'control_warmup_ns', 1, 'offset-planes', '\x66f76f0100000000'),
	('run-gpu-box-3-0-0001-0013', 'samples_ns', 12, 'offset-planes', '\xe7c7a800000000007c3cb6ed15006f1e868e7e76f09d5607d9003ea1e8cda4f0000102030100000102020000'),
	('run-gpu-box-3-0-0001-0013', 'warmup_ns', 2, 'offset-planes', '\x5979bb00000000006f00b20041000700'),
	('run-gpu-box-3-0-0001-0014', 'samples_ns', 12, 'offset-planes', '\x3485b500000000005e1a28a4008b0aafdfcc59d9e28cbd2b005aa814180f354f000101030001010103010300'),
	('run-gpu-box-3-0-0001-0014', 'warmup_ns', 2, 'offset-planes', '\x57a9c900000000002c004800ce000700'),
	('run-gpu-box-3-0-0001-0015', 'control_samples_ns', 12, 'offset-planes', '\xef9ab500000000003c9e474ec9533000f193d885b81addcc40c26200435cc0fe000100010201020000000002'),
	('run-gpu-box-3-0-0001-0015', 'control_warmup_ns', 1, 'offset-planes', '\x029d6e0100000000'),
	('run-gpu-box-3-0-0001-0015', 'samples_ns', 12, 'offset-planes', '\x45d4a900000000000d00a6c65e5fc65e60d3665d930055ec29aab504a6facd5b020000000100000302000002'),
	('run-gpu-box-3-0-0001-0015', 'warmup_ns', 2, 'offset-planes', '\x02b2bc0000000000a200cc004d000700'),
	('run-gpu-box-3-0-0001-0016', 'samples_ns', 12, 'offset-planes', '\x3c25b6000000000089006b933b6f92ede511b9c5620034696c4b7ec096686a6c030001020001010002020101'),
	('run-gpu-box-3-0-0001-0016', 'warmup_ns', 2, 'offset-planes', '\x0943ca00000000002e003b00d4000700'),
	('run-gpu-box-3-0-0001-0017', 'control_samples_ns', 12, 'offset-planes', '\x4ba9b50000000000d397d4da00a632ae28f7a12890cfb4310084756cde3e3194020101000002010102000201'),
	('run-gpu-box-3-0-0001-0017', 'control_warmup_ns', 1, 'offset-planes', '\xcae06e0100000000'),
	('run-gpu-box-3-0-0001-0017', 'samples_ns', 12, 'offset-planes', '\xc8a6a9000000000000f450d96c03ebf16080a6f300f633fb81ff566de0d05098000002000100010101000201'),
	('run-gpu-box-3-0-0001-0017', 'warmup_ns', 2, 'offset-planes', '\x5e91bb00000000007900a00042000700'),
	('run-gpu-box-3-0-0001-0018', 'samples_ns', 12, 'offset-planes', '\x32a5b50000000000007fd5907329a1212c75456300f93a4068b0e808e8cc2fdf000201030100010201020302'),
	('run-gpu-box-3-0-0001-0018', 'warmup_ns', 2, 'offset-planes', '\x038ac90000000000c2001100cd000700'),
	('run-gpu-box-3-0-0001-0019', 'control_samples_ns', 12, 'offset-planes', '\xddd6b40000000000c5f600044f8e34c9c28ac155a909002a1c122420431c39a4000200000302010003030201'),
	('run-gpu-box-3-0-0001-0019', 'control_warmup_ns', 1, 'offset-planes', '\x26fb6c0100000000'),
	('run-gpu-box-3-0-0001-0019', 'samples_ns', 12, 'offset-planes', '\xaa3ca90000000000966710fd77a58b00612d7b41a9c160d90e3f5f0053ceba44010201010003020000000001'),
	('run-gpu-box-3-0-0001-0019', 'warmup_ns', 2, 'offset-planes', '\x2edcbb0000000000c400850045000700');


--
-- Data for Name: workload; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.workload VALUES
	(20, 0, 0, '2026-11-20 18:00:00+00', '2026-11-21 00:17:00+00', '3ea8ec7f389b5545', 'mlp', 'd4fc12', 'training', 64, '{"features": 512}', 'float32', 64, 'row', NULL, NULL),
	(24, 1, 0, '2026-11-20 18:00:00+00', '2026-11-21 00:19:00+00', 'c3b5c864f308f661', 'bert-base', '17d29f', 'inference', 8, '{"sequence_length": 128}', 'bfloat16', 8, 'sequence', NULL, NULL);


--
-- Name: compilewatch_schema compilewatch_schema_pkc; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.compilewatch_schema
    ADD CONSTRAINT compilewatch_schema_pkc PRIMARY KEY (version_num);


--
-- Name: annotation pk_annotation; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.annotation
    ADD CONSTRAINT pk_annotation PRIMARY KEY (annotation_id);


--
-- Name: api_token pk_api_token; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_token
    ADD CONSTRAINT pk_api_token PRIMARY KEY (token_id);


--
-- Name: build pk_build; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.build
    ADD CONSTRAINT pk_build PRIMARY KEY (build_id);


--
-- Name: conditions pk_conditions; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.conditions
    ADD CONSTRAINT pk_conditions PRIMARY KEY (conditions_id);


--
-- Name: data_version pk_data_version; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.data_version
    ADD CONSTRAINT pk_data_version PRIMARY KEY (id);


--
-- Name: firing pk_firing; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.firing
    ADD CONSTRAINT pk_firing PRIMARY KEY (schedule, fire_at);


--
-- Name: fleet_launch pk_fleet_launch; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_launch
    ADD CONSTRAINT pk_fleet_launch PRIMARY KEY (launch_id);


--
-- Name: fleet_worker pk_fleet_worker; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fleet_worker
    ADD CONSTRAINT pk_fleet_worker PRIMARY KEY (owner);


--
-- Name: host pk_host; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.host
    ADD CONSTRAINT pk_host PRIMARY KEY (name);


--
-- Name: host_health pk_host_health; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.host_health
    ADD CONSTRAINT pk_host_health PRIMARY KEY (host);


--
-- Name: issue_script pk_issue_script; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.issue_script
    ADD CONSTRAINT pk_issue_script PRIMARY KEY (issue_id);


--
-- Name: job_state pk_job_state; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.job_state
    ADD CONSTRAINT pk_job_state PRIMARY KEY (process);


--
-- Name: latest pk_latest; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.latest
    ADD CONSTRAINT pk_latest PRIMARY KEY (series_id);


--
-- Name: machine pk_machine; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.machine
    ADD CONSTRAINT pk_machine PRIMARY KEY (machine_id);


--
-- Name: notification pk_notification; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.notification
    ADD CONSTRAINT pk_notification PRIMARY KEY (regression_id, channel);


--
-- Name: regression pk_regression; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.regression
    ADD CONSTRAINT pk_regression PRIMARY KEY (regression_id);


--
-- Name: report pk_report; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.report
    ADD CONSTRAINT pk_report PRIMARY KEY (report_id);


--
-- Name: run pk_run; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run
    ADD CONSTRAINT pk_run PRIMARY KEY (run_id);


--
-- Name: run_case pk_run_case; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_case
    ADD CONSTRAINT pk_run_case PRIMARY KEY (run_id, build_id, series_id, conditions_id);


--
-- Name: run_part pk_run_part; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_part
    ADD CONSTRAINT pk_run_part PRIMARY KEY (run_id, machine_id, build_id);


--
-- Name: run_request pk_run_request; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_request
    ADD CONSTRAINT pk_run_request PRIMARY KEY (request_id);


--
-- Name: schedule pk_schedule; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.schedule
    ADD CONSTRAINT pk_schedule PRIMARY KEY (name);


--
-- Name: schedule_watch pk_schedule_watch; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.schedule_watch
    ADD CONSTRAINT pk_schedule_watch PRIMARY KEY (schedule);


--
-- Name: series pk_series; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.series
    ADD CONSTRAINT pk_series PRIMARY KEY (series_id);


--
-- Name: stored_view pk_stored_view; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.stored_view
    ADD CONSTRAINT pk_stored_view PRIMARY KEY (view_id);


--
-- Name: strategy pk_strategy; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.strategy
    ADD CONSTRAINT pk_strategy PRIMARY KEY (strategy_id);


--
-- Name: triage_event pk_triage_event; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.triage_event
    ADD CONSTRAINT pk_triage_event PRIMARY KEY (regression_id, number);


--
-- Name: trial pk_trial; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.trial
    ADD CONSTRAINT pk_trial PRIMARY KEY (trial_id);


--
-- Name: trial_detail pk_trial_detail; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.trial_detail
    ADD CONSTRAINT pk_trial_detail PRIMARY KEY (trial_id);


--
-- Name: trial_samples pk_trial_samples; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.trial_samples
    ADD CONSTRAINT pk_trial_samples PRIMARY KEY (trial_id, kind);


--
-- Name: workload pk_workload; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.workload
    ADD CONSTRAINT pk_workload PRIMARY KEY (workload_id);


--
-- Name: ix_api_token_secret_hash; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX ix_api_token_secret_hash ON public.api_token USING btree (secret_hash);


--
-- Name: ix_fleet_launch_queue; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_fleet_launch_queue ON public.fleet_launch USING btree (queue);


--
-- Name: ix_job_state_job; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_job_state_job ON public.job_state USING btree (job);


--
-- Name: ix_notification_channel_state; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_notification_channel_state ON public.notification USING btree (channel, state);


--
-- Name: ix_regression_base_key_head_key; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_regression_base_key_head_key ON public.regression USING btree (base_key, head_key);


--
-- Name: ix_regression_recorded_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_regression_recorded_at ON public.regression USING btree (recorded_at);


--
-- Name: ix_regression_revises; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_regression_revises ON public.regression USING btree (revises);


--
-- Name: ix_regression_series_id_metric_base_key_head_key_revision; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX ix_regression_series_id_metric_base_key_head_key_revision ON public.regression USING btree (series_id, metric, base_key, head_key, revision);


--
-- Name: ix_run_case_series_id_last_started_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_run_case_series_id_last_started_at ON public.run_case USING btree (series_id, last_started_at);


--
-- Name: ix_run_part_machine_id_last_seen_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_run_part_machine_id_last_seen_at ON public.run_part USING btree (machine_id, last_seen_at);


--
-- Name: ix_run_request_state_priority_asked_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_run_request_state_priority_asked_at ON public.run_request USING btree (state, priority, asked_at);


--
-- Name: ix_series_machine_id_workload_id_strategy_id; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX ix_series_machine_id_workload_id_strategy_id ON public.series USING btree (machine_id, workload_id, strategy_id);


--
-- Name: ix_series_strategy_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_series_strategy_id ON public.series USING btree (strategy_id);


--
-- Name: ix_series_workload_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_series_workload_id ON public.series USING btree (workload_id);


--
-- Name: ix_strategy_name; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_strategy_name ON public.strategy USING btree (name);


--
-- Name: ix_trial_build_id_started_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_trial_build_id_started_at ON public.trial USING btree (build_id, started_at);


--
-- Name: ix_trial_code_commit; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_trial_code_commit ON public.trial USING btree (code_commit);


--
-- Name: ix_trial_run_id_series_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_trial_run_id_series_id ON public.trial USING btree (run_id, series_id);


--
-- Name: ix_trial_series_id_started_at_build_id; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_trial_series_id_started_at_build_id ON public.trial USING btree (series_id, started_at, build_id);


--
-- Name: ix_trial_started_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_trial_started_at ON public.trial USING btree (started_at);


--
-- Name: ix_workload_name; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX ix_workload_name ON public.workload USING btree (name);


--
-- Name: annotation fk_annotation_build_id_build; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.annotation
    ADD CONSTRAINT fk_annotation_build_id_build FOREIGN KEY (build_id) REFERENCES public.build(build_id);


--
-- Name: annotation fk_annotation_machine_id_machine; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.annotation
    ADD CONSTRAINT fk_annotation_machine_id_machine FOREIGN KEY (machine_id) REFERENCES public.machine(machine_id);


--
-- Name: firing fk_firing_request_id_run_request; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.firing
    ADD CONSTRAINT fk_firing_request_id_run_request FOREIGN KEY (request_id) REFERENCES public.run_request(request_id);


--
-- Name: firing fk_firing_schedule_schedule; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.firing
    ADD CONSTRAINT fk_firing_schedule_schedule FOREIGN KEY (schedule) REFERENCES public.schedule(name);


--
-- Name: latest fk_latest_run_id_run; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.latest
    ADD CONSTRAINT fk_latest_run_id_run FOREIGN KEY (run_id) REFERENCES public.run(run_id);


--
-- Name: latest fk_latest_series_id_series; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.latest
    ADD CONSTRAINT fk_latest_series_id_series FOREIGN KEY (series_id) REFERENCES public.series(series_id);


--
-- Name: notification fk_notification_regression_id_regression; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.notification
    ADD CONSTRAINT fk_notification_regression_id_regression FOREIGN KEY (regression_id) REFERENCES public.regression(regression_id);


--
-- Name: regression fk_regression_revises_regression; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.regression
    ADD CONSTRAINT fk_regression_revises_regression FOREIGN KEY (revises) REFERENCES public.regression(regression_id);


--
-- Name: regression fk_regression_series_id_series; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.regression
    ADD CONSTRAINT fk_regression_series_id_series FOREIGN KEY (series_id) REFERENCES public.series(series_id);


--
-- Name: run_case fk_run_case_build_id_build; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_case
    ADD CONSTRAINT fk_run_case_build_id_build FOREIGN KEY (build_id) REFERENCES public.build(build_id);


--
-- Name: run_case fk_run_case_run_id_run; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_case
    ADD CONSTRAINT fk_run_case_run_id_run FOREIGN KEY (run_id) REFERENCES public.run(run_id);


--
-- Name: run_case fk_run_case_series_id_series; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_case
    ADD CONSTRAINT fk_run_case_series_id_series FOREIGN KEY (series_id) REFERENCES public.series(series_id);


--
-- Name: run_part fk_run_part_build_id_build; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_part
    ADD CONSTRAINT fk_run_part_build_id_build FOREIGN KEY (build_id) REFERENCES public.build(build_id);


--
-- Name: run_part fk_run_part_machine_id_machine; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_part
    ADD CONSTRAINT fk_run_part_machine_id_machine FOREIGN KEY (machine_id) REFERENCES public.machine(machine_id);


--
-- Name: run_part fk_run_part_run_id_run; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_part
    ADD CONSTRAINT fk_run_part_run_id_run FOREIGN KEY (run_id) REFERENCES public.run(run_id);


--
-- Name: schedule_watch fk_schedule_watch_schedule_schedule; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.schedule_watch
    ADD CONSTRAINT fk_schedule_watch_schedule_schedule FOREIGN KEY (schedule) REFERENCES public.schedule(name);


--
-- Name: series fk_series_machine_id_machine; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.series
    ADD CONSTRAINT fk_series_machine_id_machine FOREIGN KEY (machine_id) REFERENCES public.machine(machine_id);


--
-- Name: series fk_series_strategy_id_strategy; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.series
    ADD CONSTRAINT fk_series_strategy_id_strategy FOREIGN KEY (strategy_id) REFERENCES public.strategy(strategy_id);


--
-- Name: series fk_series_workload_id_workload; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.series
    ADD CONSTRAINT fk_series_workload_id_workload FOREIGN KEY (workload_id) REFERENCES public.workload(workload_id);


--
-- Name: triage_event fk_triage_event_regression_id_regression; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.triage_event
    ADD CONSTRAINT fk_triage_event_regression_id_regression FOREIGN KEY (regression_id) REFERENCES public.regression(regression_id);


--
-- Name: trial fk_trial_build_id_build; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.trial
    ADD CONSTRAINT fk_trial_build_id_build FOREIGN KEY (build_id) REFERENCES public.build(build_id);


--
-- Name: trial_detail fk_trial_detail_trial_id_trial; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.trial_detail
    ADD CONSTRAINT fk_trial_detail_trial_id_trial FOREIGN KEY (trial_id) REFERENCES public.trial(trial_id) ON DELETE CASCADE;


--
-- Name: trial fk_trial_run_id_run; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.trial
    ADD CONSTRAINT fk_trial_run_id_run FOREIGN KEY (run_id) REFERENCES public.run(run_id);


--
-- Name: trial_samples fk_trial_samples_trial_id_trial; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.trial_samples
    ADD CONSTRAINT fk_trial_samples_trial_id_trial FOREIGN KEY (trial_id) REFERENCES public.trial(trial_id) ON DELETE CASCADE;


--
-- Name: trial fk_trial_series_id_series; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.trial
    ADD CONSTRAINT fk_trial_series_id_series FOREIGN KEY (series_id) REFERENCES public.series(series_id);


--
-- PostgreSQL database dump complete
--


