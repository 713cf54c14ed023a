-- SPDX-License-Identifier: Apache-2.0
-- The journal of release 1.0.0 in PostgreSQL, as its dump program writes it.

CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.cells (
    cell_uuid character varying(36) NOT NULL
);
CREATE TABLE public.dirty (
    id character varying(36) NOT NULL,
    host character varying(255) NOT NULL,
    nodes text NOT NULL,
    request_id character varying(255) NOT NULL,
    running boolean NOT NULL,
    created_at double precision NOT NULL,
    attempts integer NOT NULL,
    last_error text NOT NULL,
    mirrored_at double precision
);
CREATE TABLE public.lease (
    name character varying(64) NOT NULL,
    holder character varying(255) NOT NULL,
    renewals bigint NOT NULL,
    seconds double precision NOT NULL,
    host character varying(255) NOT NULL,
    taken_at double precision NOT NULL
);
CREATE TABLE public.ledger (
    aggregate_uuid character varying(36) NOT NULL,
    created_at double precision NOT NULL,
    deleted_at double precision,
    absent_since double precision
);
CREATE TABLE public.processes (
    id character varying(36) NOT NULL,
    host character varying(255) NOT NULL,
    version character varying(64) NOT NULL,
    mode character varying(16) NOT NULL,
    seen_at double precision NOT NULL
);
CREATE TABLE public.syncs (
    id bigint NOT NULL,
    command character varying(255) NOT NULL,
    host character varying(255) NOT NULL,
    started_at double precision NOT NULL,
    ended_at double precision NOT NULL,
    passes integer NOT NULL,
    seconds double precision NOT NULL,
    added integer NOT NULL,
    removed integer NOT NULL,
    stale integer NOT NULL,
    failed integer NOT NULL,
    status integer NOT NULL,
    compared boolean NOT NULL,
    mode character varying(16) NOT NULL,
    reason text NOT NULL,
    removals text NOT NULL
);
CREATE SEQUENCE public.syncs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.syncs_id_seq OWNED BY public.syncs.id;
ALTER TABLE ONLY public.processes
    ADD CONSTRAINT processes_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.syncs ALTER COLUMN id SET DEFAULT nextval('public.syncs_id_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0001');
INSERT INTO public.cells VALUES ('1f3b2c4d-0000-4000-8000-0000000000c1');
INSERT INTO public.dirty VALUES ('9c5cb5a6-7d0c-4f0e-9d5e-0d6a4b5c1e01', 'cmp-1', 'node-1,node-2', 'req-1', false, 1.5, 2, 'placement is down', NULL);
INSERT INTO public.lease VALUES ('agent', '9e3b1a52-0000-4000-8000-0000000000b1', 7, 10, 'controller-1', 1.5);
INSERT INTO public.ledger VALUES ('1f3b2c4d-0000-4000-8000-0000000000a1', 1.5, 2.5, NULL);
INSERT INTO public.processes VALUES ('2c7d9e10-0000-4000-8000-0000000000a1', 'controller-1', '1.0.0', 'mirror', 1.5);
INSERT INTO public.syncs VALUES (1, 'agent', 'controller-1', 1.5, 2.5, 1, 1, 3, 0, 0, 0, 0, true, 'mirror', '', '[]');
SELECT pg_catalog.setval('public.syncs_id_seq', 1, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.cells
    ADD CONSTRAINT cells_pkey PRIMARY KEY (cell_uuid);
ALTER TABLE ONLY public.dirty
    ADD CONSTRAINT dirty_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.lease
    ADD CONSTRAINT lease_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.ledger
    ADD CONSTRAINT ledger_pkey PRIMARY KEY (aggregate_uuid);
ALTER TABLE ONLY public.syncs
    ADD CONSTRAINT syncs_pkey PRIMARY KEY (id);
