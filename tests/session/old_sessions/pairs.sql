BEGIN TRANSACTION;
CREATE TABLE event (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at DATETIME NOT NULL, 
	kind VARCHAR(20) NOT NULL, 
	arm INTEGER, 
	value FLOAT, 
	vector TEXT, 
	about INTEGER, 
	who TEXT, 
	text TEXT
);
INSERT INTO "event" VALUES(1,'2026-11-25 19:36:47.713794','asked',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "event" VALUES(2,'2026-11-25 19:36:47.713794','asked',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "event" VALUES(3,'2026-11-25 19:36:47.717986','told',0,NULL,'[0.2, 0.1]',1,NULL,NULL);
INSERT INTO "event" VALUES(4,'2026-11-25 19:36:47.726233','told',1,NULL,'[1.2, 0.1]',2,NULL,NULL);
INSERT INTO "event" VALUES(5,'2026-11-25 19:36:47.729710','asked',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "event" VALUES(6,'2026-11-25 19:36:47.729710','asked',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "event" VALUES(7,'2026-11-25 19:36:47.740048','told',0,NULL,'[0.2, 0.1]',5,NULL,NULL);
INSERT INTO "event" VALUES(8,'2026-11-25 19:36:47.743903','told',1,NULL,'[1.2, 0.1]',6,NULL,NULL);
INSERT INTO "event" VALUES(9,'2026-11-25 19:36:47.748050','asked',0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "event" VALUES(10,'2026-11-25 19:36:47.748050','asked',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "event" VALUES(11,'2026-11-25 19:36:47.752289','told',0,NULL,'[0.2, 0.1]',9,NULL,NULL);
INSERT INTO "event" VALUES(12,'2026-11-25 19:36:47.760664','told',1,NULL,'[1.2, 0.1]',10,NULL,NULL);
CREATE TABLE session (
	id INTEGER NOT NULL, 
	writes INTEGER NOT NULL, 
	facts TEXT NOT NULL, 
	events INTEGER, 
	counted INTEGER, 
	PRIMARY KEY (id)
);
INSERT INTO "session" VALUES(1,9,'{"format": 1, "agent": "uniform", "parameters": {}, "task": "{\"problem\": \"Feasible\", \"parameters\": {\"A\": [[1.0, 1.0]], \"b\": [1.0], \"tolerance\": 0.0, \"normalise\": true}, \"K\": 2, \"D\": 2, \"budget\": null, \"delta\": 0.1, \"max_pulls\": null, \"pull_cost\": 0.0, \"law\": \"gaussian\", \"support\": null, \"sigma\": 1.0, \"actions\": \"full\", \"observation\": \"statistics\", \"pull\": \"arm\", \"dependent\": true}", "names": ["0", "1"], "public_seed": 5}',12,9);
CREATE TABLE snapshot (
	upto INTEGER NOT NULL, 
	data BLOB NOT NULL, 
	PRIMARY KEY (upto)
);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('event',12);
COMMIT;
