package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dbjobs/dbjobs/store"
)

// A login that may make no roles learns which roles somebody else has to make. The error is the one that the statements
// raise.
func TestRolesOfOwnersAreNamed(t *testing.T) {
	text, err := store.MigrationText("postgres://localhost/app", true)
	if err != nil || !strings.Contains(text, makesNoRole) {
		t.Fatalf("no statement raises %q (%v)", makesNoRole, err)
	}
	denied := fmt.Errorf("set owners: %w: ERROR: the role dbjobs_admin is missing, and %s (SQLSTATE 42501)", store.ErrDenied, makesNoRole)
	for role := range strings.FieldsSeq("dbjobs_admin dbjobs_ticker dbjobs_reader") {
		if got := noRoles(denied).Error(); !strings.Contains(got, "CREATE ROLE "+role) {
			t.Errorf("%s: %s", role, got)
		}
	}
	if other := fmt.Errorf("set owners: %w", store.ErrDenied); noRoles(other).Error() != other.Error() {
		t.Error(noRoles(other))
	}
}
