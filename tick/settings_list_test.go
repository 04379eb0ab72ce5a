package tick_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dbjobs/dbjobs/store"
	"github.com/dbjobs/dbjobs/store/storetest"
	"github.com/dbjobs/dbjobs/tick/ticktest"
)

// Settings that work together are in one list. Each setting that an error names is in a list of its own. A limit of
// time is either so long that no machine reaches it, or so short that the program may or may not reach it: then the
// program works, or the error names the setting.
var foreignSettings = map[string][]foreign{
	"postgres": {
		{settings: []string{"DateStyle = 'German'", "IntervalStyle = sql_standard", "TimeZone = 'America/St_Johns'", "standard_conforming_strings = off",
			"escape_string_warning = on", "bytea_output = escape", "extra_float_digits = -15", "client_encoding = 'LATIN1'", "array_nulls = off",
			"transform_null_equals = on", "backslash_quote = off", "row_security = off", "synchronous_commit = off", "client_min_messages = error",
			"lock_timeout = '1h'", "statement_timeout = '1h'", "idle_in_transaction_session_timeout = '1h'", "default_transaction_deferrable = on"}},
		{settings: []string{"DateStyle = 'SQL, DMY'", "IntervalStyle = iso_8601", "default_transaction_isolation = serializable", "plan_cache_mode = force_generic_plan",
			"enable_seqscan = off", "work_mem = '64kB'", "xmloption = document", "quote_all_identifiers = on"}},
		{settings: []string{"DateStyle = 'Postgres, MDY'", "IntervalStyle = postgres_verbose", "default_transaction_isolation = 'repeatable read'", "TimeZone = 'Asia/Kathmandu'",
			"search_path = ''", "enable_indexscan = off", "enable_bitmapscan = off", "check_function_bodies = off", "cursor_tuple_fraction = 0.01", "from_collapse_limit = 1", "join_collapse_limit = 1"}},
		{settings: []string{"TimeZone = 'UTC-14'", "DateStyle = 'ISO, YMD'", "extra_float_digits = 3", "default_transaction_isolation = 'read uncommitted'",
			"search_path = public, pg_catalog", "lock_timeout = '1ms'"}},
		{settings: []string{hostilePath}},
		{settings: []string{"default_transaction_read_only = on"}, fails: `default_transaction_read_only`},
		{settings: []string{"statement_timeout = '1ms'"}, fails: `^$|statement_timeout`},
		{settings: []string{"idle_in_transaction_session_timeout = '1ms'"}, fails: `^$|idle.in.transaction`},
		{settings: []string{"idle_session_timeout = '1h'"}},
		{settings: []string{"idle_session_timeout = '1ms'"}, fails: `^$|idle.session.timeout|deadline exceeded`},
	},
	"mariadb": {
		{settings: []string{"autocommit = 0", "completion_type = CHAIN", "sql_safe_updates = 1", "sql_select_limit = 1", "max_join_size = 1", "sql_big_selects = 0",
			"sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'", "default_storage_engine = MyISAM", "time_zone = '+05:30'",
			"character_set_client = latin1", "character_set_results = latin1", "collation_connection = latin1_swedish_ci"}},
		{settings: []string{"sql_select_limit = 0", "completion_type = 2", "sql_mode = 'ORACLE'", "tx_isolation = 'SERIALIZABLE'", "lc_time_names = 'de_DE'", "sql_auto_is_null = 1",
			"character_set_results = NULL", "foreign_key_checks = 0", "unique_checks = 0", "lc_messages = 'de_DE'"}},
		{settings: []string{"sql_mode = ''", "tx_isolation = 'READ-UNCOMMITTED'", "auto_increment_increment = 10", "auto_increment_offset = 3", "group_concat_max_len = 4",
			"div_precision_increment = 0", "innodb_lock_wait_timeout = 3600", "lock_wait_timeout = 3600", "max_statement_time = 3600", "wait_timeout = 3600", "idle_transaction_timeout = 3600"}},
		{settings: []string{"sql_mode = 'TRADITIONAL,SIMULTANEOUS_ASSIGNMENT,EMPTY_STRING_IS_NULL,PAD_CHAR_TO_FULL_LENGTH'", "in_predicate_conversion_threshold = 2",
			"join_cache_level = 0", "tmp_memory_table_size = 16384", "max_sort_length = 64", "max_recursive_iterations = 4294967295"}},
		{settings: []string{"sql_mode = 'MSSQL'", "time_zone = '-12:59'", "explicit_defaults_for_timestamp = 0", "low_priority_updates = 1", "optimizer_search_depth = 1",
			"optimizer_use_condition_selectivity = 1"}},
		{settings: []string{"sql_mode = 'HIGH_NOT_PRECEDENCE,IGNORE_SPACE,REAL_AS_FLOAT,NO_UNSIGNED_SUBTRACTION,NO_AUTO_VALUE_ON_ZERO,ONLY_FULL_GROUP_BY,TIME_ROUND_FRACTIONAL,NO_ZERO_DATE'"}},
		{settings: []string{"sql_mode = 'ALLOW_INVALID_DATES,NO_DIR_IN_CREATE,NO_FIELD_OPTIONS'", "collation_connection = utf8mb4_general_ci"}},
		{settings: []string{"sort_buffer_size = 1024"}, fails: `^$|sort buffer size`},
		{settings: []string{"tx_read_only = 1"}, fails: `tx_read_only`},
		{settings: []string{"max_statement_time = 0.0001"}, fails: `^$|max_statement_time`},
	},
	"mysql": {
		{settings: []string{"autocommit = 0", "completion_type = CHAIN", "sql_safe_updates = 1", "sql_select_limit = 1", "max_join_size = 1", "sql_big_selects = 0",
			"sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'", "default_storage_engine = MyISAM", "time_zone = '+05:30'",
			"character_set_client = latin1", "character_set_results = latin1", "collation_connection = latin1_swedish_ci"}},
		{settings: []string{"sql_select_limit = 0", "completion_type = 2", "sql_mode = 'ANSI'", "transaction_isolation = 'SERIALIZABLE'", "lc_time_names = 'de_DE'", "sql_auto_is_null = 1",
			"character_set_results = NULL", "foreign_key_checks = 0", "unique_checks = 0", "lc_messages = 'de_DE'"}},
		{settings: []string{"sql_mode = ''", "transaction_isolation = 'READ-UNCOMMITTED'", "auto_increment_increment = 10", "auto_increment_offset = 3", "group_concat_max_len = 4",
			"div_precision_increment = 0", "innodb_lock_wait_timeout = 3600", "lock_wait_timeout = 3600", "max_execution_time = 3600000", "wait_timeout = 3600"}},
		{settings: []string{"sql_mode = 'TRADITIONAL,PAD_CHAR_TO_FULL_LENGTH'", "tmp_table_size = 1024",
			"max_sort_length = 64", "range_optimizer_max_mem_size = 1", "cte_max_recursion_depth = 1", "windowing_use_high_precision = 0"}},
		{settings: []string{"sql_mode = 'HIGH_NOT_PRECEDENCE,IGNORE_SPACE,REAL_AS_FLOAT,NO_UNSIGNED_SUBTRACTION,NO_AUTO_VALUE_ON_ZERO,ONLY_FULL_GROUP_BY,TIME_TRUNCATE_FRACTIONAL,NO_ZERO_DATE'",
			"time_zone = '-12:59'", "optimizer_search_depth = 1", "optimizer_switch = 'derived_merge=off,hash_join=off,semijoin=off'"}},
		{settings: []string{"sql_mode = 'ALLOW_INVALID_DATES,NO_DIR_IN_CREATE'", "collation_connection = utf8mb4_general_ci", "default_collation_for_utf8mb4 = utf8mb4_general_ci", "print_identified_with_as_hex = 1"}},
		{settings: []string{"transaction_read_only = 1"}, fails: `transaction_read_only`},
		{settings: []string{"max_execution_time = 1"}, fails: `^$|max_execution_time`},
	},
	"sqlite": {
		{settings: []string{"encoding = 'UTF-16'", "page_size = 512", "auto_vacuum = FULL", "journal_mode = TRUNCATE"}},
		{settings: []string{"encoding = 'UTF-16be'", "page_size = 65536", "auto_vacuum = INCREMENTAL", "journal_mode = PERSIST", "application_id = 7"}},
		{settings: []string{"journal_mode = WAL"}},
		{settings: []string{"journal_mode = DELETE"}},
	},
}

// Ticks that run at the same time also work in sessions whose transactions are serializable by default.
func TestSettingsSerializableOfTicksBesideEachOther(t *testing.T) {
	t.Parallel()
	const jobs, ticks = 60, 4
	for engine, setting := range map[string]string{"postgres": "default_transaction_isolation = serializable", "mariadb": "tx_isolation = 'SERIALIZABLE'",
		"mysql": "transaction_isolation = 'SERIALIZABLE'"} {
		if !slices.Contains(storetest.Engines(t), engine) {
			continue
		}
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{})
			url := storetest.Settings(t, d.URL, setting)
			var defs store.Definitions
			for i := range jobs {
				defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint(i), Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Step("", "SELECT 1")}})
			}
			ticktest.Apply(t, d, defs)
			ticktest.Run(t, d)
			d.Clock.Add(5 * time.Minute)
			var all sync.WaitGroup
			var succeeded atomic.Int64
			for i := range ticks {
				all.Go(func() {
					s, err := store.Open(t.Context(), url, store.Options{Clock: d.Clock.Now})
					if err != nil {
						t.Error(err)
						return
					}
					defer s.Close()
					tk := ticktest.New(t, s)
					tk.Batch = 7
					for range 3 {
						r, err := tk.Run(t.Context())
						if succeeded.Add(int64(r.Succeeded)); err != nil || r.Unrecorded != "" {
							t.Errorf("tick %d: %v: %+v", i, err, r)
						}
					}
				})
			}
			all.Wait()
			if n := succeeded.Load(); n != jobs {
				t.Errorf("%d runs succeeded, want %d", n, jobs)
			}
		})
	}
}

// A read of a pass that loses after its first rows is sent again, as a read in a session that is serializable by default
// may lose at any row.
func TestSettingsSerializableReadsThatLose(t *testing.T) {
	t.Parallel()
	if !slices.Contains(storetest.Engines(t), "postgres") {
		t.Skip("an error between two rows is made by a sequence of PostgreSQL")
	}
	const jobs = 9
	calls := storetest.Calls{Rewrite: func(text string) string {
		if strings.Contains(text, "FROM dbjobs.jobs WHERE planned IS DISTINCT") {
			return "SELECT * FROM (" + text + ") AS q WHERE public.nth_row() <> 3 OR public.lose()"
		}
		return text
	}}
	d := storetest.Open(t, "postgres", store.Options{Wrap: calls.Wrap})
	d.Exec(t, "CREATE SEQUENCE public.rows_read")
	d.Exec(t, "CREATE FUNCTION public.nth_row() RETURNS bigint VOLATILE LANGUAGE sql AS 'SELECT nextval(''public.rows_read'')'")
	d.Exec(t, "CREATE FUNCTION public.lose() RETURNS boolean VOLATILE LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION SQLSTATE ''40001''; END'")
	var defs store.Definitions
	for i := range jobs {
		defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint(i), Own: ticktest.EveryFiveMinutes(), Steps: []store.Step{ticktest.Nop("")}})
	}
	ticktest.Apply(t, d, defs)
	ticktest.Run(t, d)
	if n := d.Int(t, "SELECT last_value FROM public.rows_read"); n < 3+jobs {
		t.Errorf("%d rows were read, want 3, and then all %d", n, jobs)
	}
	if n := d.Int(t, "SELECT count(*) FROM dbjobs.plans"); n != jobs {
		t.Errorf("%d jobs are planned, want %d", n, jobs)
	}
}

// A statement of dbjobs that follows the jobs of a chain follows it to its end, however many levels a server otherwise allows: by
// default, MySQL refuses more than 1,000 of them, and MariaDB leaves them out without a word.
func TestSettingsOfTheDepthOfAChain(t *testing.T) {
	t.Parallel()
	for engine, setting := range map[string]string{"mariadb": "max_recursive_iterations = 1", "mysql": "cte_max_recursion_depth = 1"} {
		if !slices.Contains(storetest.Engines(t), engine) {
			continue
		}
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			d := storetest.Open(t, engine, store.Options{})
			s, err := store.Open(t.Context(), storetest.Settings(t, d.URL, setting), store.Options{Clock: d.Clock.Now})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			defs := store.Definitions{Jobs: []store.Job{{Name: "job0", Steps: []store.Step{ticktest.Nop("")}}}}
			for n := range 3 {
				defs.Jobs = append(defs.Jobs, store.Job{Name: fmt.Sprint("job", n+1), After: []store.After{{Job: fmt.Sprint("job", n)}}, Steps: []store.Step{ticktest.Nop("")}})
			}
			if _, err := s.Apply(t.Context(), defs, store.ApplyOptions{}); err != nil {
				t.Fatal(err)
			}
			if r, err := ticktest.New(t, s).Run(t.Context()); err != nil || len(r.Parked) > 0 {
				t.Fatalf("%v: %+v", err, r)
			}
			through := storetest.OpenSQL(t, storetest.Settings(t, d.URL, setting)) // by a routine, in the session of its caller
			through.SetMaxOpenConns(1)
			if _, err := through.Exec(`CALL dbjobs_alter_job('job0', '{"after": "job3"}', NULL)`); err == nil || !strings.Contains(err.Error(), "in a circle") {
				t.Errorf("a routine makes a circle of four jobs: %v", err)
			}
			if _, err := through.Exec(`CALL dbjobs_alter_job('job3', '{"after": ["job1", "job2"], "steps": [{"name": "a", "sql": "SELECT 1"}, {"name": "b", "sql": "SELECT 1"}, {"name": "c", "sql": "SELECT 1"}]}', NULL)`); err != nil {
				t.Errorf("a routine writes two jobs and three steps: %v", err)
			}
			var depth int
			if err := through.QueryRow("SELECT @@" + strings.Fields(setting)[0]).Scan(&depth); err != nil || depth != 1 {
				t.Errorf("the session of the caller has the depth %d, %v", depth, err)
			}
			id := func(n int) string { return fmt.Sprintf("(SELECT id FROM dbjobs_jobs WHERE name = 'job%d')", n) }
			d.Exec(t, "INSERT INTO dbjobs_job_after (job_id, after_job_id) VALUES ("+id(0)+", "+id(3)+")")
			ticktest.Request(t, d, "job0")
			if r, err := ticktest.New(t, s).Run(t.Context()); err != nil || len(r.Parked) == 0 {
				t.Errorf("a circle of four jobs: %v: %+v", err, r)
			}
		})
	}
}
