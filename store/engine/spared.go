package engine

import (
	"errors"
	"fmt"
)

// Servers that speak the protocol of an engine may lack something that the engine has. dbjobs does not
// ask for their name or version. It sends the statement that needs it, and remembers a refusal for as
// long as the DB is open. So a server that lacks nothing gets no extra statement.

// errSpared says that a statement is not sent again, because the server lacks something that it needs.
// The transaction is tried again without the statement.
var errSpared = errors.New("the server lacks what this statement needs, and dbjobs does without")

// schemaLock is the name of Engine.SchemaLock among the statements that can be spared.
const schemaLock = "schema_lock"

// spare records the error of a statement that can be spared, if the error says that the server lacks something.
func (db *DB) spare(name string, err error) error {
	if err == nil || db.e.lacks == nil || !db.e.lacks(name, err) {
		return err
	}
	db.spared.Store(name, true)
	return fmt.Errorf("%w: %w", errSpared, err)
}

// isSpared reports whether the server has refused a statement for good.
func (db *DB) isSpared(name string) bool {
	_, is := db.spared.Load(name)
	return is
}
