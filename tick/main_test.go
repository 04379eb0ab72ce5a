package tick_test

import (
	"os"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.MainOnEach(m, strings.Fields(elsewhere)...)) }

// elsewhere are the statements that the tests of this package do not send: those of the doctor, the commands and the
// simulation, whose own tests run on every engine, and those of single engines that are not used here.
const elsewhere = `
accounted_gaps accounted_rules accounted_runs calendar_users catalogue coming_jobs contents_jobs contents_runs contents_schedules count_jobs delete_calendar
delete_first_attempts durations engine examine_after examine_attempts examine_calendars examine_gaps
examine_groups examine_links examine_numbers examine_orphans examine_pauses examine_queued examine_runs examine_stuck
examine_ticks examine_twice examine_unplanned failures_of_job figures first_users job_names keyed_run
nominal_runs oldest_kept open_runs owners path removed_job run_by_number run_latest
run_undecided runs_longest runs_open_of_job runs_under_way runs_unwell schedule_jobs server_settings standing standing_jobs stretches stuck
unplanned waiting_ends
mysql:bury_runs
postgres:behind_sequences postgres:broken_indexes postgres:hidden_tables postgres:old_views postgres:only_own postgres:repeatables_there postgres:server_tables postgres:unbound postgres:unguarded
sqlite:file_faults sqlite:file_size sqlite:next_of_owner sqlite:own_plans sqlite:set_instance sqlite:unserved`
