package engine

import "testing"

// If there may be triggers at the login, a reset looks for them, also if it does not understand the version.
func TestHasLoginTriggers(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"15.18 (Debian 15.18-0+deb12u1)": false, "16.4": false, "9.6.24": false, "17.0": true, "17.4 (Homebrew)": true, "18beta1": true, "": true,
	} {
		if got := hasLoginTriggers(version); got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}

// The words of a text show what a reset would leave in the session. Here are those whose functions the login of the tests may not
// call; TestSessionIsAsNewForTheNextStep has the others.
func TestTextsThatLastInPostgres(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"SELECT pg_backup_start('nightly', true)":                                                true,
		"select pg_catalog.PG_Start_Backup('nightly', true, false)":                              true,
		"SELECT * FROM pg_stop_backup(false)":                                                    true,
		"SELECT pg_create_physical_replication_slot('s', false, true)":                           true,
		"SELECT pg_create_logical_replication_slot('s', 'test_decoding', true)":                  true,
		"SELECT pg_copy_logical_replication_slot('s', 't', true)":                                true,
		"SELECT pg_replication_origin_session_setup('o')":                                        true,
		"INSERT INTO backups SELECT slot_name FROM pg_replication_slots":                         false,
		"INSERT INTO backups VALUES ('pg_dump') ON CONFLICT DO NOTHING":                          false,
		"SELECT pg_drop_replication_slot('s')":                                                   false,
		"INSERT INTO lag SELECT pg_wal_lsn_diff(flush_lsn, replay_lsn) FROM pg_stat_replication": false,
	} {
		if got := postgresLasts(text); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
