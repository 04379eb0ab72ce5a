package main

import (
	"fmt"
	"maps"
	"slices"
)

// annsByCall are calls about ann's things, with the words of besieged.
var annsByCall = []string{
	`CALL dbjobs_alter_job('{ann}/rollup', '{"priority": 9}', NULL)`, "CALL dbjobs_rename_job('{ann}/rollup', 'bobs', NULL)", "CALL dbjobs_drop_job('{ann}/rollup', NULL)", "CALL dbjobs_drop_job('rollup', NULL)",
	"CALL dbjobs_add_step('{ann}/rollup', 'evil', 'SELECT 1', NULL, NULL, NULL)", `CALL dbjobs_alter_step('{ann}/rollup', 'step 1', '{"sql": "SELECT 9"}', NULL)`, "CALL dbjobs_drop_step('{ann}/steps', 'one', NULL)",
	"CALL dbjobs_add_job_schedule('{ann}/held', 'weekly', NULL)", "CALL dbjobs_add_job_schedule('own', 'nightly', NULL)", "CALL dbjobs_drop_job_schedule('{ann}/rollup', 'nightly', NULL)",
	`CALL dbjobs_alter_schedule('nightly', '{"rule": "every 1m"}', NULL)`, "CALL dbjobs_drop_schedule('nightly', true, NULL)", "CALL dbjobs_drop_schedule('idle', false, NULL)", "CALL dbjobs_drop_unused_schedules(NULL)",
	"CALL dbjobs_pause('{ann}/rollup', NULL, NULL, NULL)", "CALL dbjobs_pause('nightly', 'schedule', NULL, NULL)", "CALL dbjobs_pause('{ann}', 'owner', NULL, NULL)", "CALL dbjobs_pause('t', 'tag', NULL, NULL)", "CALL dbjobs_pause(NULL, 'all', NULL, NULL)",
	"CALL dbjobs_resume('{ann}/both', NULL, NULL, NULL)", "CALL dbjobs_disable('{ann}/rollup', NULL)", "CALL dbjobs_enable('{ann}/steps', NULL)", "CALL dbjobs_abort('{ann}/rollup', false, NULL)", "CALL dbjobs_run_now('{ann}/rollup', NULL, NULL, NULL, NULL)",
	"CALL dbjobs_cancel('{run}', NULL)", "CALL dbjobs_cancel('{ann}/held#1', NULL)", "CALL dbjobs_retry('{ended}', NULL, NULL)", "CALL dbjobs_take('reports', 'bob', 600)", "CALL dbjobs_extend('{run}', 1, 600)", "CALL dbjobs_finish('{run}', 1, 'failed', 'x')",
	"CALL dbjobs_holds_own('{run}', 1)", "CALL dbjobs_end_own('{run}', 1, 1, 'failed', 1, '', '', 1, 1, 1, 'x', 'x', 'x', 'x', NULL)",
	`CALL dbjobs_create_job('forged', 'SELECT 1', NULL, '{"owner": "{ann}"}', NULL)`, `CALL dbjobs_create_job('forged', 'SELECT 1', NULL, '{"owner": "{ticker}"}', NULL)`, `CALL dbjobs_create_job('{ann}/forged', 'SELECT 1', NULL, NULL, NULL)`,
	`CALL dbjobs_alter_job('own', '{"owner": "{ann}"}', NULL)`, `CALL dbjobs_alter_job('own', '{"after": "{ann}/rollup"}', NULL)`, `CALL dbjobs_alter_job('own', '{"on": {"failed": "{ann}/rollup"}}', NULL)`,
	`CALL dbjobs_alter_job('own', '{"group": "few"}', NULL)`, `CALL dbjobs_alter_job('own', '{"schedules": ["nightly"]}', NULL)`, `CALL dbjobs_alter_job('own', '{"rule": {"rule": "every 1h", "calendar": "off"}}', NULL)`, `CALL dbjobs_alter_schedule('weekly', '{"calendar": "off"}', NULL)`,
}

// innerByCall are calls of the inner routines, which serve the other routines and do not have their checks.
var innerByCall = []string{
	`CALL dbjobs_put_job('x', {job}, '{"priority": 9}')`, `CALL dbjobs_change_job({job}, 'x', '{"priority": 9}', 'x')`, "CALL dbjobs_set_enabled({job}, 'x', false, 'x', 'x')", `CALL dbjobs_put_steps('x', {job}, '[{"sql": "SELECT 9"}]')`,
	`CALL dbjobs_put_step('x', {job}, 9, '{"sql": "SELECT 9"}')`, `CALL dbjobs_put_after('x', {own}, '{ann}', '["rollup"]')`, "SET @touched = false", `CALL dbjobs_put_links('x', {job}, '["weekly"]', @touched)`, `CALL dbjobs_put_rule('x', {job}, '{"rule": "every 1m"}', @touched)`,
	"SET @its = {schedule}", `CALL dbjobs_put_schedule('x', @its, 'x', NULL, '{"rule": "every 1m"}')`, "CALL dbjobs_log_change('job', {job}, 'x', 'x', 'x', NULL, NULL)", "CALL dbjobs_take_turns()", "CALL dbjobs_lock_job('{ann}/rollup', @its, @named)",
	"CALL dbjobs_job_document({job}, @seen)", "SELECT @seen", "CALL dbjobs_schedule_document({schedule}, @seen)", "SELECT @seen", "CALL dbjobs_step_document({job}, 1, @seen)", "SELECT @seen", "CALL dbjobs_job_columns({job}, @seen)", "SELECT @seen",
	"CALL dbjobs_attempts_of('x', @seen)", "CALL dbjobs_find_job('{ann}/rollup', @its, @named)", "SELECT @its, @named", "CALL dbjobs_find_run('{run}', @its, @job, @named)", "SELECT @its, @job, @named", "CALL dbjobs_undo(true)", "CALL dbjobs_done(true)",
}

// sessionsOfBob are settings that he makes before he calls. A setting that a server does not know, or denies, changes
// nothing.
var sessionsOfBob = []string{
	"SET sql_mode = 'ANSI_QUOTES'", "SET sql_mode = 'PIPES_AS_CONCAT'", "SET sql_mode = 'ANSI,IGNORE_SPACE'", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET sql_mode = ''", "SET sql_mode = 'ORACLE'", "SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'", "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
	"SET sql_safe_updates = 1", "SET autocommit = 0", "SET foreign_key_checks = 0", "SET unique_checks = 0", "SET check_constraint_checks = 0", "SET sql_log_bin = 0", "SET max_sp_recursion_depth = 255", "SET collation_connection = latin1_swedish_ci",
	"SET NAMES latin1", "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci", "SET character_set_results = NULL", "SET timestamp = 1", "SET timestamp = 2147483000", "SET last_insert_id = {job}", "SET sort_buffer_size = 1024", "SET lc_time_names = 'ja_JP'", "SET time_zone = '+14:00'",
	"SET group_concat_max_len = 4", "SET innodb_lock_wait_timeout = 1", "SET max_statement_time = 0.0005", "SET max_statement_time = 0.002", "SET max_statement_time = 0.005", "SET max_statement_time = 0.01", "SET max_execution_time = 1", "SET sql_select_limit = 0", "SET sql_select_limit = 1",
	"SET max_join_size = 1", "SET div_precision_increment = 0", "SET optimizer_switch = 'derived_merge=on,condition_pushdown_for_derived=on'", "SET optimizer_switch = 'materialization=off,semijoin=off,split_materialized=on'",
	"SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET SESSION TRANSACTION READ ONLY", "SET completion_type = 1", "SET auto_increment_increment = 3, auto_increment_offset = 2",
	"SET old_mode = 'NO_PROGRESS_INFO'", "SET session_track_schema = 1", "SET pseudo_thread_id = 1", "SET pseudo_slave_mode = 1", "SET gtid_domain_id = 7", "SET server_id = 7", "SET default_storage_engine = MEMORY", "SET tmp_memory_table_size = 0", "SET max_error_count = 0",
	"BEGIN", "START TRANSACTION READ ONLY", "SAVEPOINT dbjobs_call", "XA START 'bob'", "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "LOCK TABLES {bobs}.ran WRITE", "USE {bobs}", "DO GET_LOCK('dbjobs', 0)", "SET @me = '{ann}', @everything = true, @its_owner = '{ann}'",
}

// attacks returns all attacks, including those that are the same for each table and view.
func (b *besieged) attacks() (list []attack) {
	for _, name := range slices.Sorted(maps.Keys(annsRows)) {
		table := "{db}.dbjobs_" + name
		list = append(list,
			attack{"table " + name, []string{"SELECT * FROM " + table, "INSERT INTO {bobs}.ran (what) SELECT 'read' FROM " + table, "INSERT INTO " + table + " SELECT * FROM " + table, "REPLACE INTO " + table + " SELECT * FROM " + table, "UPDATE " + table + " SET owner = '{bob}'",
				"DELETE FROM " + table, "TRUNCATE TABLE " + table, "HANDLER " + table + " OPEN AS h", "HANDLER h READ FIRST", "LOCK TABLES " + table + " WRITE", "UNLOCK TABLES", "SELECT * FROM " + table + " INTO OUTFILE '/tmp/bobs'", "LOAD DATA INFILE '/etc/passwd' INTO TABLE " + table, "TABLE " + table}},
			attack{"definition of " + name, []string{"DROP TABLE " + table, "ALTER TABLE " + table + " ADD bobs int", "RENAME TABLE " + table + " TO {bobs}.mine", "CREATE TABLE {bobs}.alike LIKE " + table, "CREATE INDEX bobs ON " + table + " (id)", "CREATE TRIGGER {db}.bobs BEFORE INSERT ON " + table + " FOR EACH ROW SET @x = 1",
				"CREATE TRIGGER {bobs}.bobs BEFORE INSERT ON " + table + " FOR EACH ROW SET @x = 1", "CREATE VIEW {bobs}.over AS SELECT * FROM " + table, "CREATE TABLE {bobs}.child (id bigint, FOREIGN KEY (id) REFERENCES " + table + " (id))", "CREATE TABLE {bobs}.child (id bigint, FOREIGN KEY (id) REFERENCES " + table + " (job_id))",
				"SHOW CREATE TABLE " + table, "SHOW COLUMNS FROM " + table, "SHOW INDEX FROM " + table, "CHECKSUM TABLE " + table, "CHECK TABLE " + table, "ANALYZE TABLE " + table, "OPTIMIZE TABLE " + table, "CREATE TEMPORARY TABLE " + table + " (id bigint, owner text)", "DROP TABLE IF EXISTS {bobs}.child, {bobs}.alike"}})
	}
	for _, name := range b.named("VIEW") {
		view := "dbjobs_" + name
		list = append(list, attack{"view " + name, []string{"SELECT * FROM " + view, "SELECT * FROM " + view + " LIMIT 1000000 OFFSET 0", "SELECT * FROM " + view + " FOR UPDATE", "SELECT * FROM (SELECT * FROM " + view + ") AS v WHERE EXP(800 + LENGTH(CONCAT_WS('', v.owner))) > 0",
			"SELECT a.* FROM " + view + " a JOIN " + view + " b ON EXP(800 + LENGTH(CONCAT_WS('', b.owner))) > 0", "SELECT COUNT(*) FROM " + view + " GROUP BY (@seen := CONCAT_WS(',', @seen, owner))", "SELECT COUNT(*) FROM " + view + " HAVING MAX(owner) = '{ann}'", "SELECT @seen", "SELECT owner FROM " + view + " UNION SELECT 1 ORDER BY 1",
			"SELECT * FROM {bobs}.ran LEFT JOIN " + view + " v ON v.owner = '{ann}' WHERE v.owner IS NOT NULL", "SELECT EXTRACTVALUE(1, CONCAT(0x7e, (SELECT MAX(owner) FROM " + view + ")))", "UPDATE " + view + " SET owner = '{bob}'", "DELETE FROM " + view, "INSERT INTO " + view + " SELECT * FROM " + view,
			"ALTER VIEW " + view + " AS SELECT 1", "DROP VIEW " + view, "CREATE OR REPLACE VIEW " + view + " AS SELECT 1", "LOCK TABLES " + view + " READ", "UNLOCK TABLES", "HANDLER " + view + " OPEN", "SHOW CREATE VIEW " + view, "EXPLAIN SELECT * FROM " + view, "ANALYZE FORMAT=JSON SELECT * FROM " + view, "EXPLAIN ANALYZE SELECT * FROM " + view,
			"CREATE VIEW {bobs}.over_" + name + " AS SELECT * FROM {db}." + view, "SELECT * FROM {bobs}.over_" + name, "DROP VIEW IF EXISTS {bobs}.over_" + name}})
	}
	list = append(list, attack{"calls", annsByCall}, attack{"calls of inner routines", innerByCall})
	for _, set := range sessionsOfBob {
		list = append(list, attack{set, slices.Concat([]string{set, "SELECT * FROM {db}.dbjobs_v_jobs", "SELECT * FROM {db}.dbjobs_v_runs", "SELECT * FROM {db}.dbjobs_v_changes"}, annsByCall, []string{"COMMIT", "XA END 'bob'", "XA ROLLBACK 'bob'"})})
	}
	for n := range 12 { // a call that ends at any point, and a COMMIT of the rows that it has written
		list = append(list, attack{fmt.Sprintf("a call that is cut off, %d", n), []string{fmt.Sprintf("SET max_statement_time = %f", float64(n+1)*0.0015), `CALL dbjobs_alter_job('own', '{"after": "{ann}/rollup", "schedules": ["nightly"], "on": {"failed": "{ann}/rollup"}, "group": "few"}', NULL)`, "COMMIT",
			`CALL dbjobs_create_job('cut', 'SELECT 1', NULL, '{"owner": "{ann}", "schedules": ["nightly"]}', NULL)`, "COMMIT", `CALL dbjobs_drop_schedule('nightly', true, NULL)`, "COMMIT", "SET max_statement_time = 0", "CALL dbjobs_drop_job('cut', NULL)"}})
	}
	return append(list, routineAttacks...)
}

// routineAttacks are bob's other attacks.
var routineAttacks = []attack{
	{"another login", []string{"SET ROLE '{ann}'", "SET ROLE ALL", "SET DEFAULT ROLE '{admin}'", "SET PASSWORD FOR '{ann}' = PASSWORD('x')", "ALTER USER '{ann}' IDENTIFIED BY 'x'", "CREATE USER '{ann}'@'localhost'", "RENAME USER '{bob}' TO '{ann}x'", "GRANT ALL ON *.* TO '{bob}'", "GRANT SELECT ON {db}.* TO '{bob}'",
		"GRANT PROXY ON '{ann}' TO '{bob}'", "SET GLOBAL event_scheduler = OFF", "SET proxy_user = '{ann}'", "SET external_user = '{ann}'", "EXECUTE IMMEDIATE 'SET ROLE `{ann}`'", "FLUSH PRIVILEGES", "KILL 1", "SHUTDOWN"}},
	{"a definer", []string{"CREATE DEFINER = '{ann}'@'%' PROCEDURE {bobs}.forged() UPDATE {db}.dbjobs_jobs SET description = 'bob was here'", "CALL {bobs}.forged()", "CREATE DEFINER = '{admin}'@'%' PROCEDURE {bobs}.forged() UPDATE {db}.dbjobs_jobs SET description = 'bob was here'", "CALL {bobs}.forged()",
		"CREATE DEFINER = '{admin}'@'%' VIEW {bobs}.forged AS SELECT * FROM {db}.dbjobs_jobs", "SELECT * FROM {bobs}.forged", "CREATE DEFINER = '{admin}'@'%' EVENT {bobs}.forged ON SCHEDULE AT CURRENT_TIMESTAMP DO DELETE FROM {db}.dbjobs_jobs"}},
	{"routines in the place of ours", []string{"CREATE OR REPLACE PROCEDURE {db}.dbjobs_me(OUT me text, OUT everything boolean) SET me = '{ann}', everything = true", "CREATE PROCEDURE {db}.bobs() SELECT 1", "DROP PROCEDURE {db}.dbjobs_me", "ALTER PROCEDURE {db}.dbjobs_put_job SQL SECURITY DEFINER", "CREATE FUNCTION {db}.user() RETURNS text RETURN '{ann}'",
		"CREATE PROCEDURE {bobs}.dbjobs_me(OUT me text, OUT everything boolean) SET me = '{ann}', everything = true", "CREATE PROCEDURE {bobs}.dbjobs_refuse(state text, message text) SET @x = 1", "CREATE FUNCTION {bobs}.`user`() RETURNS text DETERMINISTIC NO SQL RETURN '{ann}@x'", "CREATE FUNCTION {bobs}.substring_index(a text, b text, c int) RETURNS text DETERMINISTIC NO SQL RETURN '{ann}'",
		"USE {bobs}", `CALL {db}.dbjobs_alter_job('{ann}/rollup', '{"priority": 9}', NULL)`, "CALL {db}.dbjobs_drop_job('{ann}/rollup', NULL)", "DROP PROCEDURE {bobs}.dbjobs_me", "DROP PROCEDURE {bobs}.dbjobs_refuse"}},
	{"tables in the place of ours", []string{"CREATE TEMPORARY TABLE dbjobs_jobs (id bigint, owner varchar(190), name varchar(190), live_name varchar(190))", "CREATE TEMPORARY TABLE {bobs}.dbjobs_jobs (id bigint, owner varchar(190), name varchar(190), live_name varchar(190))", "INSERT INTO {bobs}.dbjobs_jobs VALUES ({job}, '{bob}', 'rollup', 'rollup')",
		"CREATE TEMPORARY TABLE {bobs}.dbjobs_installation (id int, owners boolean)", "INSERT INTO {bobs}.dbjobs_installation VALUES (1, false)", "USE {bobs}", `CALL {db}.dbjobs_alter_job('rollup', '{"priority": 9}', NULL)`, "SELECT * FROM {db}.dbjobs_v_jobs", "WITH dbjobs_jobs AS (SELECT '{bob}' AS owner) SELECT * FROM {db}.dbjobs_v_jobs"}},
	{"a procedure of the own", []string{"CREATE OR REPLACE PROCEDURE {bobs}.mine() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET @x = 1; CALL {db}.dbjobs_drop_job('{ann}/rollup', NULL); CALL {db}.dbjobs_pause('nightly', 'schedule', NULL, NULL); COMMIT; END", "CALL {bobs}.mine()", "DROP PROCEDURE IF EXISTS {bobs}.mine",
		"CREATE PROCEDURE {bobs}.mine() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET @x = 1; CALL {db}.dbjobs_drop_job('{ann}/rollup', NULL); COMMIT; END", "CALL {bobs}.mine()", "DROP PROCEDURE IF EXISTS {bobs}.mine"}},
	{"an event", []string{"CREATE EVENT {bobs}.later ON SCHEDULE AT CURRENT_TIMESTAMP DO BEGIN INSERT INTO {bobs}.ran (as_whom, what) VALUES (CURRENT_USER(), 'event'); CALL {db}.dbjobs_drop_job('{ann}/rollup', NULL); END"}},
	{"a trigger", []string{"CREATE TRIGGER {bobs}.fires AFTER INSERT ON {bobs}.inbox FOR EACH ROW BEGIN INSERT INTO {bobs}.ran (as_whom, what) VALUES (CURRENT_USER(), 'trigger'); CALL {db}.dbjobs_drop_job('{ann}/rollup', NULL); END", "INSERT INTO {bobs}.inbox VALUES (1)", "DROP TRIGGER {bobs}.fires"}},
	{"texts that are prepared", []string{"PREPARE p FROM 'UPDATE dbjobs_jobs SET description = ?'", "SET @d = 'bob was here'", "EXECUTE p USING @d", "PREPARE p FROM 'CALL dbjobs_alter_job(?, ?, NULL)'", `SET @job = '{ann}/rollup', @o = '{"priority": 9}'`, "EXECUTE p USING @job, @o", `SET @job = CONCAT('{ann}/rollup', CHAR(0)), @o = '{}'`, "EXECUTE p USING @job, @o"}},
	{"JSON of two minds", []string{`CALL dbjobs_create_job('twice', 'SELECT 1', NULL, '{"owner": "{bob}", "owner": "{ann}"}', NULL)`, `CALL dbjobs_create_job('twice', 'SELECT 1', NULL, '{"owner": "{ann}", "owner": "{bob}"}', NULL)`, `CALL dbjobs_create_job('twice2', 'SELECT 1', NULL, '{"\\u006fwner": "{ann}"}', NULL)`, `CALL dbjobs_create_job('twice3', 'SELECT 1', NULL, '{"OWNER": "{ann}"}', NULL)`,
		`CALL dbjobs_create_job('twice4', 'SELECT 1', NULL, '{"owner": ["{ann}"]}', NULL)`, `CALL dbjobs_create_job('twice5', 'SELECT 1', NULL, '{"owner": "{ann} "}', NULL)`, `CALL dbjobs_create_job('twice6', 'SELECT 1', NULL, '{"owner": " {ann}"}', NULL)`, `CALL dbjobs_create_job('twice7', 'SELECT 1', NULL, '{"schedules": ["weekly"], "schedules": ["nightly"]}', NULL)`,
		`CALL dbjobs_create_job('twice8', 'SELECT 1', NULL, '{"group": null, "group": "few"}', NULL)`, `CALL dbjobs_create_job('twice9', 'SELECT 1', NULL, '{"after": [], "after": ["{ann}/rollup"]}', NULL)`, `CALL dbjobs_alter_job('own', '{"on": {"failed": null, "failed": "{ann}/rollup"}}', NULL)`, `CALL dbjobs_alter_job('own', '{"schedules": "1,{schedule}"}', NULL)`}},
	{"texts that break out", []string{"CALL dbjobs_alter_job('x'' OR ''1''=''1', '{}', NULL)", "CALL dbjobs_find_job('%', @i, @n)", "CALL dbjobs_drop_job('{ann}/rollup ', NULL)", "CALL dbjobs_drop_job(CONCAT('{ann}', CHAR(0), '/rollup'), NULL)", "CALL dbjobs_cancel('{ann}/held#1#1', NULL)", "CALL dbjobs_cancel(CONCAT('{bob}/own#', '{run}'), NULL)", "CALL dbjobs_finish('{run}bob', 1, NULL, NULL)",
		"CALL dbjobs_finish(UPPER('{run}'), 1, NULL, NULL)", "CALL dbjobs_pause('{ann} ', 'owner', NULL, NULL)", "CALL dbjobs_pause(UPPER('{ann}'), 'owner', NULL, NULL)", "CALL dbjobs_pause('t', 'TAG', NULL, NULL)", "CALL dbjobs_pause('nightly ', 'schedule ', NULL, NULL)", `CALL dbjobs_alter_schedule('nightly ', '{"rule": "every 1m"}', NULL)`, "CALL dbjobs_drop_schedule('NIGHTLY', true, NULL)"}},
	{"what the server tells", []string{"SHOW PROCESSLIST", "SELECT * FROM information_schema.processlist", "SELECT * FROM information_schema.innodb_trx", "SHOW ENGINE INNODB STATUS", "SHOW BINARY LOGS", "SHOW BINLOG EVENTS", "SELECT * FROM mysql.user", "SELECT * FROM mysql.proc", "SELECT * FROM mysql.general_log", "SELECT * FROM mysql.innodb_table_stats",
		"SELECT * FROM information_schema.tables WHERE table_schema = '{db}'", "SELECT * FROM information_schema.statistics WHERE table_schema = '{db}'", "SELECT * FROM information_schema.innodb_buffer_page LIMIT 1", "SELECT * FROM performance_schema.events_statements_history", "SELECT * FROM performance_schema.events_statements_summary_by_digest", "SELECT * FROM performance_schema.data_locks",
		"SELECT * FROM sys.processlist", "SELECT LOAD_FILE('/etc/passwd')", "SHOW GRANTS FOR '{ann}'", "SET optimizer_trace = 'enabled=on'", "SELECT * FROM dbjobs_v_jobs", "SELECT * FROM information_schema.optimizer_trace", "CALL dbjobs_drop_job('rollup', NULL)", "SELECT * FROM information_schema.optimizer_trace", "SET profiling = 1", "SHOW PROFILES"}},
	{"a number of a row", []string{"SET insert_id = 4000000", "CALL dbjobs_create_job('numbered', 'SELECT 1', NULL, NULL, NULL)", "SET insert_id = 9223372036854775806", "CALL dbjobs_create_job('last', 'SELECT 1', NULL, NULL, NULL)", "SET insert_id = 9223372036854775806", "CALL dbjobs_create_schedule('last', 'every 1h', NULL, NULL, NULL)",
		"SET insert_id = 9223372036854775806", "CALL dbjobs_pause('own', NULL, NULL, NULL)", "SET insert_id = 9223372036854775806", "CALL dbjobs_resume('own', NULL, NULL, NULL)", "SELECT LAST_INSERT_ID({job})", "SET insert_id = 0", "CALL dbjobs_create_job('zero', 'SELECT 1', NULL, NULL, NULL)", "SET insert_id = {job}", "CALL dbjobs_create_job('hers', 'SELECT 1', NULL, NULL, NULL)"}},
	{"a step that commits", []string{"COMMIT", "BEGIN", "CALL dbjobs_drop_job('{ann}/rollup', NULL)", "ROLLBACK", "START TRANSACTION", "CALL dbjobs_end_own('{run}', 1, 1, 'succeeded', 1, '', '', 1, 1, 1, 'x', 'x', 'x', 'x', NULL)", "COMMIT", "SET autocommit = 1"}},
}
