-- SPDX-License-Identifier: Apache-2.0
-- The journal of release 1.0.0 in MySQL, as its dump program writes it.

CREATE TABLE `alembic_version` (
  `version_num` varchar(32) NOT NULL,
  PRIMARY KEY (`version_num`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `alembic_version` VALUES ('0001');
CREATE TABLE `cells` (
  `cell_uuid` varchar(36) NOT NULL,
  PRIMARY KEY (`cell_uuid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `cells` VALUES ('1f3b2c4d-0000-4000-8000-0000000000c1');
CREATE TABLE `dirty` (
  `id` varchar(36) NOT NULL,
  `host` varchar(255) NOT NULL,
  `nodes` mediumtext NOT NULL,
  `request_id` varchar(255) NOT NULL,
  `running` tinyint(1) NOT NULL,
  `created_at` double NOT NULL,
  `attempts` int(11) NOT NULL,
  `last_error` text NOT NULL,
  `mirrored_at` double DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `dirty` VALUES ('9c5cb5a6-7d0c-4f0e-9d5e-0d6a4b5c1e01','cmp-1','node-1,node-2','req-1',0,1.5,2,'placement is down',NULL);
CREATE TABLE `lease` (
  `name` varchar(64) NOT NULL,
  `holder` varchar(255) NOT NULL,
  `renewals` bigint(20) NOT NULL,
  `seconds` double NOT NULL,
  `host` varchar(255) NOT NULL,
  `taken_at` double NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `lease` VALUES ('agent','9e3b1a52-0000-4000-8000-0000000000b1',7,10,'controller-1',1.5);
CREATE TABLE `ledger` (
  `aggregate_uuid` varchar(36) NOT NULL,
  `created_at` double NOT NULL,
  `deleted_at` double DEFAULT NULL,
  `absent_since` double DEFAULT NULL,
  PRIMARY KEY (`aggregate_uuid`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `ledger` VALUES ('1f3b2c4d-0000-4000-8000-0000000000a1',1.5,2.5,NULL);
CREATE TABLE `processes` (
  `id` varchar(36) NOT NULL,
  `host` varchar(255) NOT NULL,
  `version` varchar(64) NOT NULL,
  `mode` varchar(16) NOT NULL,
  `seen_at` double NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `processes` VALUES ('2c7d9e10-0000-4000-8000-0000000000a1','controller-1','1.0.0','mirror',1.5);
CREATE TABLE `syncs` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `command` varchar(255) NOT NULL,
  `host` varchar(255) NOT NULL,
  `started_at` double NOT NULL,
  `ended_at` double NOT NULL,
  `passes` int(11) NOT NULL,
  `seconds` double NOT NULL,
  `added` int(11) NOT NULL,
  `removed` int(11) NOT NULL,
  `stale` int(11) NOT NULL,
  `failed` int(11) NOT NULL,
  `status` int(11) NOT NULL,
  `compared` tinyint(1) NOT NULL,
  `mode` varchar(16) NOT NULL,
  `reason` text NOT NULL,
  `removals` mediumtext NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `syncs` VALUES (1,'agent','controller-1',1.5,2.5,1,1,3,0,0,0,0,1,'mirror','','[]');
