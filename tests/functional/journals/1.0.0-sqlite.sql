-- SPDX-License-Identifier: Apache-2.0
-- The journal of release 1.0.0 in SQLite, as its dump program writes it.

CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version VALUES('0001');
CREATE TABLE dirty (
    id VARCHAR(36) NOT NULL,
    host VARCHAR(255) NOT NULL,
    nodes TEXT NOT NULL,
    request_id VARCHAR(255) NOT NULL,
    running BOOLEAN NOT NULL,
    created_at FLOAT NOT NULL,
    attempts INTEGER NOT NULL,
    last_error TEXT NOT NULL,
    mirrored_at FLOAT,
    PRIMARY KEY (id)
);
INSERT INTO dirty VALUES('9c5cb5a6-7d0c-4f0e-9d5e-0d6a4b5c1e01','cmp-1','node-1,node-2','req-1',0,1.5,2,'placement is down',NULL);
CREATE TABLE ledger (
    aggregate_uuid VARCHAR(36) NOT NULL,
    created_at FLOAT NOT NULL,
    deleted_at FLOAT,
    absent_since FLOAT,
    PRIMARY KEY (aggregate_uuid)
);
INSERT INTO ledger VALUES('1f3b2c4d-0000-4000-8000-0000000000a1',1.5,2.5,NULL);
CREATE TABLE cells (
    cell_uuid VARCHAR(36) NOT NULL,
    PRIMARY KEY (cell_uuid)
);
INSERT INTO cells VALUES('1f3b2c4d-0000-4000-8000-0000000000c1');
CREATE TABLE lease (
    name VARCHAR(64) NOT NULL,
    holder VARCHAR(255) NOT NULL,
    renewals BIGINT NOT NULL,
    seconds FLOAT NOT NULL,
    host VARCHAR(255) NOT NULL,
    taken_at FLOAT NOT NULL,
    PRIMARY KEY (name)
);
INSERT INTO lease VALUES('agent','9e3b1a52-0000-4000-8000-0000000000b1',7,10.0,'controller-1',1.5);
CREATE TABLE processes (
    id VARCHAR(36) NOT NULL,
    host VARCHAR(255) NOT NULL,
    version VARCHAR(64) NOT NULL,
    mode VARCHAR(16) NOT NULL,
    seen_at FLOAT NOT NULL,
    PRIMARY KEY (id)
);
INSERT INTO processes VALUES('2c7d9e10-0000-4000-8000-0000000000a1','controller-1','1.0.0','mirror',1.5);
CREATE TABLE syncs (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    command VARCHAR(255) NOT NULL,
    host VARCHAR(255) NOT NULL,
    started_at FLOAT NOT NULL,
    ended_at FLOAT NOT NULL,
    passes INTEGER NOT NULL,
    seconds FLOAT NOT NULL,
    added INTEGER NOT NULL,
    removed INTEGER NOT NULL,
    stale INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    status INTEGER NOT NULL,
    compared BOOLEAN NOT NULL,
    mode VARCHAR(16) NOT NULL,
    reason TEXT NOT NULL,
    removals TEXT NOT NULL
);
INSERT INTO syncs VALUES(1,'agent','controller-1',1.5,2.5,1,1.0,3,0,0,0,0,1,'mirror','','[]');
INSERT INTO sqlite_sequence VALUES('syncs',1);
